"""make.py [LONGBENCH.zip] >golden.jsonl - cases with their published scores: made-up texts of every dataset. With a
LongBench archive instead the rows in it, each against pieces of its own text and answers, for `oracle`. Needs the packages of
published.py."""
import json, random, sys, zipfile

import published

random.seed(7)
WORDS = ("the a an The cache caches of KV tokens is are it Paris paris 12 7 x = foo(bar) na\u00efve \u00c9t\u00e9 \u00e9t\u00e9 end. "
         "We show that. model's -- \u2014 \u4e2d\u6587 \u03a3 1\u00bd #note // `code` return self.x, \u00a0 \u2028 a.b City Food").split(" ")
TREC = ["City", "Country", "Food", "Other location", "Percent, fraction", "Order, rank", "Event", "Individual"]


def text(n):
    return "".join(random.choice(WORDS) + random.choice([" ", " ", " ", "\n", ". ", "  "]) for _ in range(n))


def mixed(gold):
    """Some of the words of a right answer among others."""
    parts = gold.split(" ")
    kept = [p for p in parts if random.random() < 0.6]
    return " ".join(kept + text(random.randrange(4)).split(" ") if random.random() < 0.7 else text(4).split(" ") + kept)


def made_up():
    for dataset in sorted(published.F1 | published.ROUGE | published.CODE):
        for _ in range(6):
            golds = [text(random.randrange(1, 25)) for _ in range(random.randrange(1, 3))]
            yield dataset, mixed(golds[0]), golds, None
        yield dataset, "", ["x"], None
        yield dataset, text(12), [text(12)], None
    for _ in range(12):
        gold = random.choice(TREC)
        named = random.sample(TREC, random.randrange(3)) + [gold] * (random.random() < 0.7)
        yield "trec", "\n" * random.randrange(2) + " or ".join(named) + "\nCity", [gold], TREC_ALL
    for _ in range(6):
        n = str(random.randrange(30))
        many = " ".join(random.choice([n, "1", "07", "x9"]) for _ in range(random.randrange(4)))
        yield "passage_count", many, [n], None
        yield "passage_retrieval_en", "Paragraph " + many, ["Paragraph " + n], None


TREC_ALL = TREC  # an answer of made_up() names no other class


def of_rows(path):
    known = published.F1 | published.ROUGE | published.CODE | {"trec", "passage_count", "passage_retrieval_en"}
    with zipfile.ZipFile(path) as z:
        for name in sorted(z.namelist()):
            dataset = name.split("/")[-1].removesuffix(".jsonl")
            if dataset.removesuffix("_e") not in known:
                continue
            for line in z.read(name).decode().splitlines():
                row = json.loads(line)
                golds, names = row["answers"], row["all_classes"]
                for answer in golds[:1] + [mixed(golds[0]), row["context"][:200], row["context"][200:900],
                                           golds[-1].upper(), golds[0] + "\n" + golds[0]]:
                    yield dataset, answer, golds, names


for dataset, answer, golds, names in of_rows(sys.argv[1]) if sys.argv[1:] else made_up():
    score = published.score(dataset, answer, golds, names)
    print(json.dumps(dict(dataset=dataset, answer=answer, gold=golds, score=score)))

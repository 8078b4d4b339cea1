"""suites.py RULER KVPRESS SCBENCH >suites.jsonl - cases with the scores that the suites' own code gives. The arguments are
checkouts of NVIDIA/RULER, NVIDIA/kvpress and microsoft/MInference (or files under the same names); needs rouge-score==0.1.2."""
import importlib.util, json, random, sys, types

from rouge_score import rouge_scorer

random.seed(11)


class Rouge:  # what `evaluate.load("rouge")` does for one pair, without fetching its script
    def compute(self, predictions, references, use_aggregator):
        scorer = rouge_scorer.RougeScorer(["rougeLsum"], use_stemmer=False)
        return {"rougeLsum": [scorer.score(r, p)["rougeLsum"].fmeasure for p, r in zip(predictions, references)]}


def stub(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


def load(path):
    spec = importlib.util.spec_from_file_location("suite" + str(abs(hash(path))), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stub("evaluate", load=lambda name: Rouge())
stub("args", parse_args=None)
stub("repo_qa_utils", compute_score=None)
stub("tqdm", tqdm=lambda x: x)
ruler = load(sys.argv[1] + "/scripts/eval/synthetic/constants.py")
longbench_v2 = load(sys.argv[2] + "/evaluation/benchmarks/longbenchv2/calculate_metrics.py")
scbench = load(sys.argv[3] + "/scbench/compute_scores.py")

WORDS = ("the a an The river Rivers of blue is are it na\u00efve \u00c9t\u00e9 \u00e9t\u00e9 end. B A, (C) D. AB We 12 7.5 x=3 \u4e2d\u6587 \u3002\u6587\u5b57 "
         "\u300c\u4e2d\u300d model's -- \u2014 \u03a3 a.b City\u00a0food\tthis ...").split(" ")


def text(n):
    return "".join(random.choice(WORDS) + random.choice([" ", " ", " ", "\n", ". ", "  ", "", ".\n", "\n\n"]) for _ in range(n))


def word():
    return "".join(random.choice("abcdefghijklmnopqrstuvwxyzABCDE0123456789") for _ in range(random.randrange(3, 9)))


def around(*parts):
    return text(random.randrange(5)) + " ".join(parts) + random.choice(["", ".", "\n"]) + text(random.randrange(5))


def ruler_cases():
    for task in ("niah_single_1 niah_single_2 niah_single_3 niah_multikey_1 niah_multikey_2 niah_multikey_3 niah_multivalue "
                 "niah_multiquery vt cwe fwe qa_1 qa_2").split():
        for _ in range(8):
            golds = [random.choice([word, lambda: word().upper() + " \u00c9t\u00e9"])() for _ in range(random.choice([1, 3, 4, 5, 10]))]
            named = [g if random.random() < 0.6 else random.choice([g.upper(), g[:-1], g.swapcase()]) for g in golds]
            answer = around(*random.sample(named, random.randrange(len(named) + 1)))
            metric = ruler.string_match_part if task[:2] == "qa" else ruler.string_match_all
            # of one row, without its rounding to hundredths of a percent
            n = len(golds)
            score = metric([answer], [golds]) / 100
            yield task, answer, golds, round(score * n) / n if task[:2] != "qa" else score


def choice():
    options = [text(3).strip() or "x" for _ in range(4)]
    i = random.randrange(4)
    golds = [options[i], "ABCD"[i]]
    said = random.choice(golds + ["B", "Z", options[0]])
    return random.choice([
        said, " " + said + ".", f"The answer is: {said}", f"i think the answer is {said}, or C", f"it says the option is\n'{said}'!",
        f"my answer: ({said})", f"so the correct one would be {said} and not D", "", "answer is", f"none of AB {said}",
        f"an answer is:{said}", f"\u00a0the  \"answer\" is  {said}"]), golds


def scbench_cases():
    def one(task, answer, golds, label, of=None):
        return task, answer, golds, scbench.get_score_one(answer, label, of or task, "")

    for _ in range(40):
        yield one("scbench_choice_eng", *(c := choice()), c[1], "longbook_choice_eng")
    for _ in range(8):
        gold = word()
        for task in ("scbench_kv", "scbench_prefix_suffix", "scbench_repoqa_and_kv"):
            yield one(task, around(random.choice([gold, gold[:-1], gold.swapcase(), "x" + gold])), [gold], gold, "kv_retrieval")
        golds = [word() for _ in range(random.choice([3, 6, 7, 8]))]
        yield one("scbench_vt", around(*random.sample(golds, random.randrange(len(golds)))), golds, golds)
        gold = text(2).strip() or "x"
        for task in ("scbench_qa_eng", "scbench_many_shot", "longdialogue_qa_eng"):
            yield one(task, around(random.choice([gold, gold.upper(), gold[1:]])), [gold], [gold], "longdialogue_qa_eng")
        for task in ("scbench_qa_chn", "longbook_qa_chn"):
            gold = text(4)
            yield one(task, around(gold[:random.randrange(len(gold) + 1)]), [gold], [gold], "longbook_qa_chn")
        gold = text(5)
        yield one("longbook_qa_eng", around(gold), [gold, "x"], [gold, "x"])
        gold = random.randrange(100)
        for task in ("scbench_mf", "math_find"):
            value = random.choice([gold, gold + 0.25])
            answer = around(str(random.choice([value, gold, value + 0.5, f"v{value}.", f"{gold}.9"])))
            yield one(task, answer, [str(value)], value, "math_find")
        for task in ("scbench_summary_with_needles", "passkey", "number_string"):
            answer = random.choice(["is " + str(gold), f"{gold}\n{gold + 1}", f"{gold}{gold}", around(str(gold)), "none"])
            yield one(task, answer, [str(gold)], str(gold), "passkey")
        for task in ("scbench_summary", "scbench_summary_with_needles", "longbook_sum_eng"):
            gold = text(random.randrange(1, 60))
            kept = " ".join(w for w in gold.split(" ") if random.random() < 0.7)
            yield one(task, around(kept, text(9)), [gold], gold, "scbench_summary")


def v2_cases():
    for _ in range(20):
        gold, said = random.choice("ABCD"), random.choice("ABCD")
        answer = random.choice([f"The correct answer is ({said}).", f"**The correct answer is ({said})**", f"The correct answer is {said}", said,
                                f"the correct answer is ({said})", f"The correct answer is *({said})*, not (A)", f"The correct answer is {said}pple"])
        yield "longbench-v2", answer, [gold], float(longbench_v2.score(answer, gold))


for dataset, answer, gold, score in [*ruler_cases(), *scbench_cases(), *v2_cases()]:
    print(json.dumps(dict(dataset=dataset, answer=answer, gold=gold, score=score)))

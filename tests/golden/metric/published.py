"""published.py - LongBench's metrics (its metrics.py and eval.py) with the packages that it takes them from: `rouge` 1.0.1
and `fuzzywuzzy` 0.18.0 with `python-Levenshtein`."""
import re, string, sys
from collections import Counter

sys.setrecursionlimit(100000)  # `rouge` walks back through its table by recursion

F1 = {"narrativeqa", "qasper", "multifieldqa_en", "hotpotqa", "2wikimqa", "musique", "triviaqa"}
ROUGE = {"gov_report", "qmsum", "multi_news", "samsum"}
CODE = {"lcc", "repobench-p"}
FIRST_LINE = {"trec", "triviaqa", "samsum"}


def words(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def f1(answer, gold):
    a, g = words(answer), words(gold)
    same = sum((Counter(a) & Counter(g)).values())
    return 2 * (same / len(a)) * (same / len(g)) / (same / len(a) + same / len(g)) if same else 0


def rouge(answer, gold):
    from rouge import Rouge
    try:
        return Rouge().get_scores([answer], [gold], avg=True)["rouge-l"]["f"]
    except ValueError:
        return 0.0


def code(answer, gold):
    from fuzzywuzzy import fuzz
    lines = answer.lstrip("\n").split("\n")
    line = next((x for x in lines if "`" not in x and "#" not in x and "//" not in x), "")
    return fuzz.ratio(line, gold) / 100


def classes(answer, gold, names):
    named = [name for name in names if name in answer]
    for name in named:
        if name in gold and name != gold:
            named.remove(name)
    return 1 / len(named) if gold in named else 0.0


def numbers(answer, right):
    found = re.findall(r"\d+", answer)
    return sum(n == right for n in found) / len(found) if found else 0.0


def retrieval(answer, gold):
    return numbers(answer, re.findall(r"Paragraph (\d+)", gold)[0])


def score(dataset, answer, golds, names=None):
    base = dataset.removesuffix("_e")
    if base in FIRST_LINE:
        answer = answer.lstrip("\n").split("\n")[0]
    metric = (f1 if base in F1 else rouge if base in ROUGE else code if base in CODE else retrieval
              if base == "passage_retrieval_en" else numbers if base == "passage_count" else
              lambda a, g: classes(a, g, names))
    return max([0.0] + [metric(answer, gold) for gold in golds])

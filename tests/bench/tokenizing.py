"""tokenizing.py BUILD_DIR - tokenising on one thread beside `tokenizers`, `tiktoken` and `sentencepiece`, in MB/s.

English is the contexts of the LongBench subset where it is there, otherwise this machine's licence texts; each is
tokenised as one text. Then a million bytes of one letter, of blanks and of one emoji, which a merger that is not careful
takes quadratic time for: ours alone. The fastest of several times, one program after the other.
"""
import json, os, subprocess, sys, tempfile, time, zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../golden/vocabularies")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import vocabularies

build = sys.argv[1]
TIMES = 7


def english():
    path = os.path.dirname(os.path.abspath(__file__)) + "/../../../shared/datasets/longbench_subset.zip"
    if not os.path.exists(path):
        folder = "/usr/share/common-licenses/"
        return "\n".join(open(folder + name).read() for name in sorted(os.listdir(folder)))
    with zipfile.ZipFile(path) as z:
        rows = [json.loads(line) for name in sorted(z.namelist()) if name.endswith(".jsonl")
                for line in z.read(name).decode().split("\n") if line]
    return "\n\n".join(row["context"] for row in rows)[:4_000_000]


def ours(model, path, times):
    out = subprocess.run([build + "/tests/bench/tokenize", model, path, str(times)], check=True, capture_output=True,
                         text=True).stdout.split()
    return float(out[0]) / 1e6, int(out[1])


def theirs(encode, text, times):
    """MB/s; the ids are counted outside."""
    best = 0
    for _ in range(times):
        start = time.perf_counter()
        encode(text)
        best = max(best, len(text.encode()) / (time.perf_counter() - start) / 1e6)
    return best


def peers(name, where):
    """(peer, text -> ids, does it take repetitive text?) of one vocabulary, and the model that we read."""
    path = vocabularies.path_of(name)
    if name.startswith("mistral"):
        parts = vocabularies.pieces(path)
        model = vocabularies.folder(f"{where}/{name}", len(parts))
        os.symlink(path, model + "/tokenizer.model")
        tok = vocabularies.pieces_json(parts, "prepend")
        return model, [("sentencepiece", vocabularies.oracle(name)), ("tokenizers", vocabularies.encoder(tok))]
    ranks = vocabularies.tiktoken_ranks(path)
    model = vocabularies.folder(f"{where}/{name}", len(ranks) + 256)
    os.symlink(path, model + ("/qwen.tiktoken" if name == "qwen" else "/tokenizer.model"))
    tok = vocabularies.byte_level_json(name, *vocabularies.byte_level(ranks))
    return model, [("tiktoken", vocabularies.oracle(name)), ("tokenizers", vocabularies.encoder(tok))]


rows = []
with tempfile.TemporaryDirectory() as where:
    texts = {"English": english(), "one letter": "a" * 1_000_000, "blanks": " " * 1_000_000,
             "one emoji": "\U0001f600" * 250_000}
    for name, vocabulary in (("llama3", "Llama 3"), ("qwen", "Qwen"), ("mistral3", "Mistral v3")):
        if not vocabularies.path_of(name):
            print(f"skip {vocabulary}: its package is not installed", file=sys.stderr)
            continue
        model, others = peers(name, where)
        for what, text in texts.items():
            path = f"{where}/text"
            with open(path, "w") as f:
                f.write(text)
            plain = what == "English"
            rate, n = ours(model, path, TIMES if plain else 2)
            cells = []
            for peer, encode in others if plain else []:
                assert len(encode(text)) == n, f"{vocabulary}, {what}: {peer} gives another number of ids than {n}"
                rate_of_peer = theirs(encode, text, 3)
                cells.append(f"{peer} {rate_of_peer:.2f} MB/s: {rate / rate_of_peer:.1f}x")
            rows.append((f"{vocabulary}, {what}", f"{len(text.encode()) / 1e6:.1f} MB", f"{rate:.2f} MB/s", ", ".join(cells)))
            print("  " + ", ".join(rows[-1]), file=sys.stderr, flush=True)
print("| tokenising, one thread | text | ours | peers |\n| --- | --- | --- | --- |")
for row in rows:
    print("| " + " | ".join(row) + " |")

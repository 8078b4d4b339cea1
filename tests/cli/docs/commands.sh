# Every command in README.md and docs/ runs: the indented lines that begin with one of our tools or a variable for it, each
# page's in one folder, one after the other, with tiny models in place of the default ones. Those for Slurm are run by
# tests/golden/slurm, and the question service is the tests' own. What a page shows of their output they still print, but for
# numbers.
printf 'User: {content}\nAnswer:' >chat
case $BUILD in *asan | *tsan) skip "a sanitizer must be linked into every program, examples/prefix.c too" ;; esac
mkdir models && cp -r "$DATA/minibert" models/all-MiniLM-L6-v2
export EVP_MODELS=$PWD/models
. "$TOP/tests/cli/qgen/mock"
SERVICE=$base/ok/v1 python3 - "$TOP" "$BUILD" <<'PY'
import json, os, re, subprocess, sys
from pathlib import Path

top, build = (Path(word).resolve() for word in sys.argv[1:])
here = Path.cwd()
PAGES = ["README.md"] + [f"docs/{name}.md" for name in ("texts", "requests", "profiling", "planning", "serving", "sampled", "cost", "drift")]
WORDS = "the fox jumps over a dog and then sees that hens were gone from their house before night fell on all".split()


def blocks(page):
    """The indented blocks whose first word is one of our commands."""
    for block in re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", (top / page).read_text(), re.M):
        text = re.sub(r"^    ", "", block, flags=re.M)
        if re.match(r"(OPENAI_API_KEY=\S+ )?evp-|M=|# crontab", text):
            yield text


def make_inputs(folder):
    """What the pages take for granted: texts, logs of requests and of answers."""
    (folder / "my-texts").mkdir()
    for k in range(8):
        words = [WORDS[(i * (2 * k + 3) + i * i // 7) % len(WORDS)] for i in range(60)]
        (folder / "my-texts" / f"{k}.txt").write_text(" ".join(words) + ".\n")
    (folder / "request.json").write_text('{"messages":[{"role":"user","content":"A fox and a dog"}]}\n')
    (folder / "answers.jsonl").write_text('{"context":"0","question":"What?","config":"none","answer":"A fox."}\n')
    text = " ".join(f"{word}{i}" for i in range(80) for word in ("section", "says"))
    log = "".join(json.dumps({"model": "m", "timestamp": 1.7e9 + k, "messages": [{"role": "user", "content": f"{text}\n\nWhat is {k} {'?' * (k % 3 + 1)}"}]}) + "\n"
                  for k in range(8))
    for name in ("requests.log", "requests.log.1"):
        (folder / name).write_text(log)
    subprocess.run(["gzip", folder / "requests.log.1"], check=True)


def adapt(text):
    """Folders of this test instead of the machine's, and less to do."""
    for word, local in ((" --model $M", ""), ("/dev/shm/evp", "dram"), ("/var/tmp/evp", "ssd"), ("/data/evp", "ssd"), ("capacity=64G", "capacity=64M"), ("capacity=1T", "capacity=200M"), ("https://host/v1", os.environ["SERVICE"]), ("proxy.log", "requests.log"),
                        ("--min-tokens 512", "--min-tokens 64"), ("--configs ...", "--configs knorm:drop=0.5"),
                        ("--shard I/N -o profile-I.h5", "--shard 1/1 -o profile-1.h5"), ("--concurrency 8 -o questions.jsonl", "--concurrency 8 -o asked.jsonl"), ("--ids ID", "--ids 0")):
        text = text.replace(word, local)
    text = re.sub(r"evp-profile\b", r"evp-profile --max-new-tokens 4", text)
    text = re.sub(r"(evp-gain|evp-replay --assume)\b", r"\1 --model synthetic:llama-3.1-8b", text).replace("--assume --model synthetic:llama-3.1-8b", "--model synthetic:llama-3.1-8b --assume")
    return re.sub(r"(evp-profile|evp-pack|evp-drift(?=.*--contexts)|evp-import --requests|evp-show contexts.jsonl|evp-show --find request.json)\b",
                  rf"\1 --model synthetic:tiny --chat-template {here}/chat", text)


said = {}  # page: what its commands printed


def shape(line):
    """A line without its numbers, units and widths: what does not depend on the machine, the model or the texts."""
    line = re.sub(r"(?<= )-(?= |$)|[-+]?\d[\d.,]*( [KMG]iB| B| %|x)?", "#", line)
    return " ".join(line.split())


def outputs(page):
    """The lines of the fenced blocks that show what our commands print."""
    for block in re.findall(r"^```text\n(evp-.*?)^```$", (top / page).read_text(), re.M | re.S):
        yield from block.splitlines()


def run(page, text, folder):
    done = subprocess.run(["bash", "-o", "pipefail", "-ec", adapt(text)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    said.setdefault(page, set()).update(shape(line) for line in (done.stdout + done.stderr).splitlines())
    if done.returncode:
        print(f"{page}: status {done.returncode} of\n{adapt(text)}{done.stderr[-600:]}")
    return done.returncode == 0


def begin(folder):
    """What a page goes on from: the steps for texts."""
    for text in list(blocks("docs/texts.md"))[:2]:
        run("docs/texts.md", text, folder)
    subprocess.run(["cc", top / "examples/prefix.c", "-I", top / "loader/libevicpress", "-L", build, f"-Wl,-rpath,{build}", "-levicpress", "-pthread",
                    "-o", folder / "prefix"], check=True)
    (folder / "log.jsonl").write_text("".join(json.dumps({"context": json.loads(line)["id"], "count": 2}) + "\n"
                                              for line in (folder / "contexts.jsonl").read_text().splitlines() if '"text"' in line))
    (folder / "access.jsonl").write_text((folder / "log.jsonl").read_text())


n = 0
for page in PAGES:
    folder = here / page.replace("/", "-")
    folder.mkdir()
    make_inputs(folder)
    if page not in ("README.md", "docs/texts.md"):
        begin(folder)
    for text in blocks(page):
        n += run(page, text, folder)
    for line in outputs(page):
        if shape(line) not in said[page]:
            print(f"{page}: no command prints a line like\n{line}")
print(n, "blocks ran")
PY

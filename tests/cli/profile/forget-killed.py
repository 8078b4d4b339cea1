"""forget-killed.py MODEL - kills runs that forget at random moments, and goes on under the same and
another command: ten nights, and more of them where few runs live long enough to be killed."""
import itertools, json, random, re, subprocess, sys, time
from pathlib import Path
import h5py

NOW, DAY = 1.75e9, 86400
r = random.Random(1)
file, folder = Path("p.h5"), Path("p.h5.d")


def rows(night, ids):
    with open("c.jsonl", "w") as c, open("q.jsonl", "w") as q:
        for i in ids:
            print(json.dumps(dict(id=i, text=f"The fox {i} jumps.", ask=" {question}")), file=c)
            print(json.dumps(dict(id=f"q{i}", context=i, split="train", text="What?", asked_at=NOW + night * DAY)), file=q)


def command(forget, configs):
    return ["evp-profile", "--model", sys.argv[1], "c.jsonl", "q.jsonl", "--max-new-tokens", "2", "--configs", configs, "-q",
            "-o", "p.h5", *(["--forget", str(forget)] if forget else [])]


def ids(path):
    with h5py.File(path) as f:
        return set(f["/contexts/id"].asstr()[:])


def check(stay, when):
    shards = [p for p in folder.glob("*.h5") if re.fullmatch(r"[0-9a-f]{16}(-\d+)?\.h5", p.name)]
    have = set().union(ids(file), *map(ids, shards))
    assert stay <= have, (when, stay - have)


rows(0, [f"n0-{k}" for k in range(4)])
subprocess.run(command(0, "none"), check=True)
asked = {f"n0-{k}": 0 for k in range(4)}
killed = 0
for night in itertools.count(1):
    if night > 10 and killed >= 10:
        break
    known = set(asked)
    asked |= {f"n{night}-{k}": night for k in range(2)} | {f"n{night - 1}-0": night}
    today = [i for i, n in asked.items() if n == night]
    rows(night, today)
    stay = {i for i, n in asked.items() if night - n <= 3}
    configs = r.choice(["none", "knorm:drop=0.5"])
    limit = 0.1
    while True:
        run = subprocess.Popen(command(r.choice([3, 3, 3, 0]), configs), stderr=subprocess.PIPE, text=True)
        try:
            said = run.communicate(timeout=r.random() * limit)[1]
            if "another process is writing" not in said:  # the killed one's child, for a moment
                break
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
            killed += 1
            limit *= 1.5
        check(stay & known, (night, "killed"))
    assert run.returncode == 0, said
    check(stay, (night, "ended"))
    for _ in range(100):
        if subprocess.run(command(3, "none"), stderr=subprocess.PIPE).returncode == 0:
            break
        time.sleep(0.1)
    assert ids(file) == stay and not folder.exists(), (night, ids(file) ^ stay)
print("each context stayed")

"""check.py MODEL WORK - called by check, with evp-profile in PATH."""
import json, os, random, shutil, signal, subprocess, sys, time
import h5py, numpy as np

MODEL = os.path.realpath(sys.argv[1])
os.chdir(sys.argv[2])
KILLS = 50
failed = False
TIMES = {"contexts/prefill_s", "contexts/prefill_n", "contexts/question_s", "contexts/prefill_spread", "contexts/question_spread", "contexts/profiled_at", "prefill_curve/seconds", "cells/compress_s", "cells/decompress_s", "cells/decode_1_s", "cells/decode_8_s", "cells/decode_32_s"}
CONFIGS = "knorm:drop=0.5,keydiff:drop=0.7"


def verdict(good, name, why=""):
    global failed
    failed |= not good
    print(f"ok profile: {name}" if good else f"FAIL profile: {name}: {why}", flush=True)


def write_inputs():
    words = "The harbour master of Ostrov is called {} and owns {} boats. He was born in {}. His dog likes {} best. "
    rows = [("Anna", 12, 1950, "herring"), ("Boris", 7, 1961, "cheese"), ("Clara", 31, 1972, "apples"), ("Dmitri", 4, 1983, "tea")]
    with open("c.jsonl", "w") as c, open("q.jsonl", "w") as q:
        for i, row in enumerate(rows):
            c.write(json.dumps({"id": f"c/{i}", "dataset": "made", "text": words.format(*row), "ask": " {question}"}) + "\n")
            for k, text in enumerate(["Who owns the boats?", "What does the dog like?"]):
                q.write(json.dumps({"id": f"c/{i}/{k}", "context": f"c/{i}", "split": ["train", "test"][k], "text": text}) + "\n")


def command(out, configs=CONFIGS, *more):
    return ["evp-profile", "c.jsonl", "q.jsonl", "--model", MODEL, "--max-new-tokens", "4", "-q", "--configs", configs, "-o", out, *more]


def profile(out, configs=CONFIGS, *more):
    r = subprocess.run(command(out, configs, *more), capture_output=True, text=True)
    return r.returncode, r.stderr.strip()


def contents(path):
    found = {}
    with h5py.File(path) as f:
        f.visititems(lambda name, o: found.update({name: o[()]}) if isinstance(o, h5py.Dataset) and name not in TIMES else None)
    return found


def differ(a, b):
    if a.keys() != b.keys():
        return "datasets"
    return ", ".join(k for k in a if a[k].shape != b[k].shape or not np.array_equal(a[k], b[k], equal_nan=a[k].dtype.kind == "f"))


def kill_at(moment):
    """Runs until `moment` seconds; True when it ended by itself before."""
    p = subprocess.Popen(command("k.h5"), stderr=subprocess.PIPE, text=True)
    try:
        said = p.communicate(timeout=moment)[1]
        if "another process is writing" in said:  # a child of the killed one, on a slow machine for more than a second
            return kill_at(moment)
        if p.returncode:
            verdict(False, "a run after kills", said)
        return True
    except subprocess.TimeoutExpired:
        p.send_signal(signal.SIGKILL)
        p.communicate()
        return False


def left_over():
    return [n for n in os.listdir(".") if n.startswith("k.h5") and n not in ("k.h5", "k.h5.d")]


def kill_test(want, seconds):
    """Moments are drawn over the whole run; a finished one is thrown away and begun again."""
    rng, killed, finished, wrong = random.Random(1), 0, 0, ""
    while killed < KILLS and not wrong:
        if kill_at(rng.uniform(0, 1.05) * seconds):
            finished += 1
            wrong = differ(contents("k.h5"), want) or (os.path.exists("k.h5.d") and "k.h5.d stayed") or ""
            os.remove("k.h5")
        else:
            killed += 1
            if os.path.exists("k.h5"):  # renamed into place just before
                wrong = differ(contents("k.h5"), want)
        wrong = wrong or ", ".join(left_over())
    if not wrong:
        status, said = profile("k.h5")
        wrong = said or differ(contents("k.h5"), want)
    verdict(not wrong, f"killed at {killed} random moments, the result is that of an undisturbed run", wrong)


write_inputs()
status, said = profile("a.h5")
verdict(status == 0 and not os.path.exists("a.h5.d"), "a whole profile", said)
if status:
    sys.exit(1)
want = contents("a.h5")
started = time.time()
profile("b.h5")
seconds = time.time() - started
verdict(not differ(contents("b.h5"), want), "the same again, times apart", differ(contents("b.h5"), want))
os.rename("a.h5", "keep.h5")
before = open("b.h5", "rb").read()
profile("b.h5")
verdict(open("b.h5", "rb").read() == before, "nothing is done twice")

status, said = profile("n.h5", "none")
alone = contents("n.h5")["answers/text"][:, 0] if status == 0 else []
verdict(list(alone) == list(want["answers/text"][:, 0]), "the reference answers alone as in the batch", said)
status, said = profile("n.h5", CONFIGS)
verdict(status == 0 and not differ(contents("n.h5"), want), "configs added later give the same table", said)

parts = [(profile(f"s{i}.h5", CONFIGS, "--shard", f"{i}/2"), contents(f"s{i}.h5")) for i in (1, 2)]
rows = all(np.array_equal(part[k], want[k][i::2], equal_nan=part[k].dtype.kind == "f")
           for i, (_, part) in enumerate(parts) for k in want if k.startswith(("contexts", "cells")))
texts = sorted(t for _, part in parts for t in part["answers/text"].ravel()) == sorted(want["answers/text"].ravel())
verdict(rows and texts, "two shards have what one run has")

os.mkdir("full")
if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=28k", "none", "full"], capture_output=True).returncode == 0:
    status, said = profile("full/p.h5")
    left = [n for n in os.listdir("full") if not n.endswith(".d")]
    verdict(status == 1 and said.count("\n") == 0 and "No space left" in said and not left, "a full disk", f"{status} {said} {left}")
    subprocess.run(["mount", "-o", "remount,size=1m", "full"])
    status, said = profile("full/p.h5")
    verdict(status == 0 and not differ(contents("full/p.h5"), want), "with free bytes again it goes on", said)
    subprocess.run(["umount", "full"])
else:
    print("skip profile: a full disk: only root can mount a small one")

kill_test(want, seconds)
sys.exit(failed)

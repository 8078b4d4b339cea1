"""drift.py BUILD_DIR WORK - called by check: the policy drift of evp-replay request by request, against a model of it in Python.
Requests come one after the other, to a tier that is large enough for everything, so that every context is where its own
utility is highest. Questions go by --topics-change, so that it is known which request asks which."""
import csv, json, os, subprocess, sys
import numpy as np

build, work, here = sys.argv[1], sys.argv[2], os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{here}/../../data", f"{here}/../belief"]
import answers
from reference import reference

C, Q, N, WARM, NEWEST, ALPHA = 6, 8, 600, 150, 8, 2.0
CONFIGS, SHARE, READ_S, LATENCY = ["none", "keydiff:drop=0.5", "kivi:bits=4", "kivi:bits=2"], [1, 0.5, 0.3, 0.2], 1e9, 0.001
V = len(CONFIGS)


def draw(rng):
    """(C, V, Q) similarities, of which the first questions lose less."""
    loss = rng.uniform(0, 0.3, (C, V, 1)) * np.linspace(0.5, 2, Q) * rng.uniform(0.5, 1.5, (C, V, Q))
    loss[:, 0] = 0
    return np.float32(np.clip(1 - loss, 0, 1)).astype(float)


def replay(x, contexts, asked, threshold):
    answers.write(f"{work}/t.h5", x, CONFIGS, contexts, np.tile(SHARE, (C, 1)))
    with open(f"{work}/tiers.json", "w") as f:
        json.dump(dict(evp="tiers", version=1, tiers=[dict(name="ssd", kind="file", uri="/ssd", capacity_bytes=10**15, read_bytes_per_s=READ_S,
                                                           write_bytes_per_s=READ_S, latency_s=LATENCY)]), f)
    with open(f"{work}/trace.jsonl", "w") as f:
        f.writelines('{"context":"c%d"}\n' % c for c in asked)
    subprocess.run([f"{build}/evp-replay", "-q", f"{work}/t.h5", "--tiers", f"{work}/tiers.json", "--trace", f"{work}/trace.jsonl", "--rate", "0",
                    "--policy", f"drift:{threshold}", "--alpha", str(ALPHA), "--warm", str(WARM / N), "--topics-change",
                    "--per-request", f"{work}/q.tsv", "-o", f"{work}/r.tsv"], check=True)
    rows = lambda name: list(csv.DictReader(open(f"{work}/{name}"), delimiter="\t"))
    (line,) = rows("r.tsv")
    return [(r["context"], r["config"], float(r["quality"])) for r in rows("q.tsv")], int(line["profiled"]), float(line["profiling_s"])


def model(x, contexts, asked, threshold):
    mean, std, n = x[:, :, 0].copy(), np.zeros((C, V)), np.ones((C, V), int)
    predict = lambda: reference(mean, std, n)[3 * V :].reshape(C, V, 2)[:, :, 0]
    quality, newest, seen, profiled, busy = predict().copy(), [[] for _ in range(C)], [], 0, 0.0
    number, total = np.zeros(C, int), np.bincount(asked, minlength=C)
    since, early = np.zeros(C, int), Q // 2

    def best(c):
        stored = ALPHA * quality[c] - (LATENCY + contexts["kv_bytes"][c] * np.array(SHARE) / READ_S + contexts["question_s"][c])
        recomputed = ALPHA - contexts["prefill_s"][c] - contexts["question_s"][c]
        return -1 if recomputed > stored.max() else int(stored.argmax())

    at = [best(c) for c in range(C)]
    for i, c in enumerate(asked):
        half, k = (total[c] + 1) // 2, number[c]
        question = 1 + (k % early if k < half else early + (k - half) % (Q - 1 - early))
        number[c] += 1
        if i < WARM:
            continue
        seen.append((f"c{c}", CONFIGS[at[c]] if at[c] >= 0 else "-", x[c, at[c], question] if at[c] > 0 else 1))
        if at[c] <= 0:
            continue
        newest[c], since[c] = (newest[c] + [question])[-NEWEST:], since[c] + 1
        if since[c] < NEWEST or quality[c, at[c]] - x[c, at[c], newest[c]].mean() <= threshold:
            continue
        of = x[c][:, newest[c]]
        mean[c], std[c], n[c], since[c] = of.mean(1), of.std(1, ddof=1), NEWEST, 0
        quality[c] = predict()[c]
        at[c], profiled = best(c), profiled + 1
        busy += contexts["prefill_s"][c] + V * NEWEST * 2 * contexts["question_s"][c]
    return seen, profiled, busy


worlds = wrong = times = 0
for seed in range(8):
    for threshold in 0.02, 0.1, 0.3:
        rng = np.random.default_rng(seed)
        kv = rng.integers(10**8, 10**9, C)
        contexts = dict(n_tokens=kv // 1000, prefill_s=kv / 6e8, question_s=np.full(C, 0.01), kv_bytes=kv)
        case = draw(rng), contexts, rng.permutation(np.arange(N) % C), threshold
        (got, got_n, got_s), (want, want_n, want_s) = replay(*case), model(*case)
        same = len(got) == len(want) and all(a[:2] == b[:2] and abs(a[2] - b[2]) < 1e-6 for a, b in zip(got, want))
        worlds, times = worlds + 1, times + want_n
        wrong += not (same and got_n == want_n and abs(got_s - want_s) < 1e-6)
good = wrong == 0 and times > 0
print(f"{'ok' if good else 'FAIL'} drift: {worlds} worlds of {N} requests, contexts profiled again {times} times, {wrong} worlds unlike the model")
sys.exit(not good)

"""equal.py BUILD WORK - evp-report --at-quality against brute force: of a kind's points, the lowest TTFT of any point that is
good enough, or of any two points' line at that quality. Random replays, with equal and unknown points."""
import random, subprocess, sys
from collections import defaultdict
from math import inf, isfinite, isnan, nan

build, work = sys.argv[1:3]
POLICIES = ["prefill", "lru", "lru+kivi:bits=4", "lru+kivi:bits=2", "lru+snapkv:drop=0.5", "lru+snapkv:drop=0.9", "lru+snapkv:drop=0.5+kivi:bits=4",
            "tlru:1.5+snapkv:drop=0.5", "night", "night:load", "manifest=s/m-1.jsonl", "manifest=s/m-2.jsonl"]
KIND = dict(zip(POLICIES, "prefill lru lru+kivi lru+kivi lru+snapkv lru+snapkv lru+snapkv+kivi tlru:1.5+snapkv night night:load manifest=s/ manifest=s/".split()))


def lowest(points, q):
    best = min((t for x, t in points if x >= q), default=inf)
    for a, s in points:
        for b, t in points:
            if a < q <= b:
                best = min(best, s + (t - s) * (q - a) / (b - a))
    return best


def close(a, b):
    return isnan(a) and isnan(b) or abs(a - b) <= 1e-5 * max(abs(a), abs(b))


number = lambda cell: nan if cell == "-" else float(cell)
text = lambda x: "-" if isnan(x) else repr(x)
compared = wrong = 0
for seed in range(30):
    r = random.Random(seed)
    kinds = defaultdict(list)
    with open(f"{work}/r.tsv", "w") as f:
        print("policy", "rate", "alpha", "requests", "ttft_mean_s", "quality", sep="\t", file=f)
        for rate in (0, 0.5, 2):
            for policy in POLICIES:
                for alpha in (0.1, 1, 10):
                    q = round(r.random(), r.choice((1, 3, 6)))
                    t = nan if r.random() < 0.1 else round(0.01 + r.random() * 10 ** r.uniform(-1, 3), 4)
                    print(policy, rate, alpha, 100, text(t), q, sep="\t", file=f)
                    if isfinite(t):
                        kinds[rate, KIND[policy]].append((q, t))
    asked, slo = [round(r.random(), 3) for _ in range(5)], round(10 ** r.uniform(-1, 2), 3)
    out = subprocess.run([f"{build}/evp-report", f"{work}/r.tsv", "--at-quality", ",".join(map(str, asked)), "--max-ttft", f"{slo}"],
                         check=True, capture_output=True, text=True).stdout.splitlines()[1:]
    want = [(q, rate, kind) for q in asked for rate, kind in sorted(kinds)]
    got = [line.split("\t") for line in out]
    if [(float(g[0]), float(g[1]), g[2]) for g in got] != want:
        sys.exit(f"FAIL at-quality: other lines with seed {seed}")
    at = {w: lowest(kinds[w[1], w[2]], w[0]) for w in want}
    for w, g in zip(want, got):
        ttft = at[w] if isfinite(at[w]) else nan
        least = min(at[k] for k in want if k[0] == w[0] and k[1] == w[1])
        rates = [k[1] for k in want if (k[0], k[2]) == (w[0], w[2]) and at[k] <= slo]
        off = [x for x, y in zip(map(number, g[4:]), (ttft, ttft / least, max(rates, default=nan))) if not close(x, y)]
        compared += 1
        wrong += bool(off) or int(g[3]) != len(kinds[w[1], w[2]])
print(f"{'FAIL' if wrong else 'ok'} TTFT at one quality, and the highest rate: {wrong} of {compared} differ from brute force")
sys.exit(wrong > 0)

"""sizes.py BUILD - evp-gain --sweep over 100 sizes of DRAM and SSD, beside a run of evp-gain for each; and over 60 sizes of DRAM,
beside KVCache.AI's kvcache-simulator (PyPI), which counts hits and has no times. 12,000 requests, in turns, the fastest of three."""
import json, os, random, subprocess, sys, tempfile, time

ROUNDS, GIB = 3, 2**30
gain = [f"{sys.argv[1]}/evp-gain", "-q", "--model", "synthetic:llama-3.1-8b", "--gpu", "H100", "--gpus", "4", "--json"]
simulator = [f"{os.path.dirname(sys.executable)}/kvcache-simulator", "run", "--model", "llama-3.1-8b", "--policies", "lru",
             "--block-size", "512", "--no-progress", "--format", "json"]
fastest = {}


def timed(name, *commands):
    start = time.perf_counter()
    out = [subprocess.run(c, check=True, capture_output=True, text=True).stdout for c in commands]
    fastest[name] = min(fastest.get(name, 1e9), time.perf_counter() - start)
    return [json.loads(o) for o in out]


with tempfile.TemporaryDirectory() as work:
    r, trace = random.Random(7), f"{work}/trace.jsonl"
    with open(trace, "w") as f:
        for i in range(12000):
            document, turns = int(r.paretovariate(0.4)) % 4000, r.randrange(4, 40)
            ids = [document * 100 + t for t in range(turns)] + [10**6 + i]
            f.write(json.dumps({"timestamp": i * 300 + r.randrange(300), "input_length": len(ids) * 512, "output_length": 1, "hash_ids": ids}) + "\n")
    steps = [k * 1024 * GIB // 9 for k in range(10)]
    dram = [k * 16 * GIB for k in range(1, 61)]
    for _ in range(ROUNDS):
        (sweep,) = timed("sweep", gain + [trace, "--sweep", "dram=0..1T/9,ssd=0..16T/9", "--price", "dram=5,ssd=100"])
        timed("runs", *[gain + [trace, "--dram", str(d), "--ssd", str(16 * s)] for d in steps for s in steps])
        (ours,) = timed("dram", gain + [trace, "--hbm", "0", "--sweep", "dram=16G..960G/59"])
        (theirs,) = timed("peer", simulator + ["--trace", trace, "--budgets-gib", ",".join(str(d // GIB) for d in dram)])
assert sweep["n_sizes"] == 100 and [s["dram_bytes"] for s in ours["sizes"]] == dram
print(f"100 sizes of DRAM and SSD: {fastest['sweep']:.2f} s; a run for each: {fastest['runs']:.2f} s; ratio {fastest['runs'] / fastest['sweep']:.1f}")
print(f"60 sizes of DRAM: {fastest['dram']:.2f} s; kvcache-simulator: {fastest['peer']:.2f} s; ratio {fastest['peer'] / fastest['dram']:.1f}")
peer = {p["gib"]: round(p["results"]["lru"]["hitRate"], 3) for p in theirs["points"]}
print("found, ours in all requests, theirs in the second half:",
      {dram[i] // GIB: (round(1 - ours["sizes"][i]["computed"], 3), peer.get(dram[i] / GIB)) for i in (0, 14, 29, 59)})

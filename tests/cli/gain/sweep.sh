# Sizes and prices: each size has the figures of a run of its own; the best are those beside which no other is as good in all
# three; what is no list of sizes or prices is refused before a log is read.
command -v python3 >/dev/null || skip "python3 is not installed"
python3 - <<'END'
import json, random
r = random.Random(4)
with open("trace.jsonl", "w") as f:
    for i in range(1500):
        document, turns = int(r.paretovariate(0.6)) % 60, r.randrange(1, 12)
        ids = [document * 100 + t for t in range(turns)] + [100000 + i]
        f.write(json.dumps({"timestamp": i * 200 + r.randrange(100), "input_length": len(ids) * 512, "hash_ids": ids}) + "\n")
END
gain() { evp-gain -q --gpus 1 trace.jsonl --model synthetic:llama-3.1-8b --gpu H100 --hbm 2G "$@"; }
gain --sweep dram=0..12G/3,ssd=16G..64G --price dram=5,ssd=100 --picture sizes.svg >table
sed -n '/^  sizes/,$p' table | cut -c 1-40 | grep -v '^$'
gain --sweep dram=0..12G/3,ssd=16G..64G --price dram=5,ssd=100 --json >sweep.json
for dram in 0 4G 8G 12G; do
    for ssd in 16G 32G 64G; do gain --dram $dram --ssd $ssd --json >run-$dram-$ssd.json; done
done
python3 - <<'END'
import glob, json
import xml.etree.ElementTree as xml
g = json.load(open("sweep.json"))
runs = {(r["dram_bytes"], r["ssd_bytes"]): r["caches"][2] for r in map(json.load, map(open, glob.glob("run-*")))}
assert len(g["sizes"]) == len(runs) == g["n_sizes"] == 12 and g["n_best"] == len(g["best"])
for s in g["sizes"]:
    run = runs[s["dram_bytes"], s["ssd_bytes"]]
    same = "ttft_s", "ttft_p95_s", "computed", "saved_s", "writes_dropped_bytes"
    assert all(s[k] == run[k] for k in same), (s, run)
    assert abs(s["usd"] - (5 * s["dram_bytes"] / 2**30 + 100 * s["ssd_bytes"] / 2**40)) < 1e-9
key = lambda s: (s["usd"], s["ttft_s"], s["ttft_p95_s"])
worse = lambda a, b: key(a) != key(b) and all(x >= y for x, y in zip(key(a), key(b)))
assert g["best"] == [s for s in g["sizes"] if not any(worse(s, o) for o in g["sizes"])]
assert 2 <= len(g["best"]) < 12 and [s["usd"] for s in g["sizes"]] == sorted(s["usd"] for s in g["sizes"])
print("as in runs of their own, and no other is better")
marks = [m for m in xml.parse("sizes.svg").iter() if m.find("{http://www.w3.org/2000/svg}title") is not None]
assert len(marks) == 12 + len(g["best"]), len(marks)
END
echo "-- without prices one is cheaper that has less of both"
gain --sweep ssd=16G..64G --dram 4G --json | python3 -c 'import json, sys; g = json.load(sys.stdin); print(g["n_sizes"], {s["dram_bytes"] >> 30 for s in g["sizes"]}, g["best"][0]["usd"])'
for sweep in '' dram dram= dram=1G.. dram=..1G dram=0..1G dram=2G..1G dram=1G..2G/0 dram=1G..2G/64 dram=1G..2G/x dram=-1 dram=1e308 \
    dram=16777215T dram=1,dram=2 hbm=1G 'dram=1G,,ssd=1T' "dram=$(printf 9%.0s $(seq 99))"; do
    evp-gain nowhere --model synthetic:tiny --gpu L4 --sweep "$sweep" 2>&1 | cut -c 1-60 | grep -v Try
done
for price in '' dram ssd=1 dram=-1 dram=nan dram=1e308,ssd=1 dram=1:2; do
    evp-gain nowhere --model synthetic:tiny --gpu L4 --sweep dram=1G,ssd=1G --price "$price" 2>&1 | cut -c 1-60
done
evp-gain nowhere --model synthetic:tiny --gpu L4 --price dram=1 2>&1
evp-gain nowhere --model synthetic:tiny --gpu L4 --sweep dram=1G --picture x.svg 2>&1 || true

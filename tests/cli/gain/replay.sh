# evp-gain and evp-replay agree on one trace and hardware: mean TTFT of LRU, as it is and compressed, within a factor of 1.5,
# and what is not written within a tenth of all writes, where the SSD is busy with reads and writes, and where it is not.
command -v python3 >/dev/null || skip "python3 is not installed"
python3 - <<'END'
import json, random
r = random.Random(5)
with open("trace.jsonl", "w") as f:
    for i in range(3000):
        document, turns = int(r.paretovariate(0.5)) % 200, r.randrange(4, 24)
        ids = [document * 100 + t for t in range(turns)] + [100000 + i]
        f.write(json.dumps({"timestamp": i * 400 + r.randrange(400), "input_length": len(ids) * 512, "hash_ids": ids}) + "\n")
END
for write in 200M 1G 4G; do
    bytes=$(python3 -c "print({'200M': 200 << 20, '1G': 1 << 30, '4G': 4 << 30}['$write'])")
    cat >tiers.json <<-END
	{"evp":"tiers","version":1,"tiers":[
	{"name":"dram","kind":"dram","uri":"/dev/shm/x","capacity_bytes":$((16 << 30)),"read_bytes_per_s":51.2e9,"write_bytes_per_s":51.2e9,"latency_s":0},
	{"name":"ssd","kind":"file","uri":"/tmp/x","capacity_bytes":$((128 << 30)),"read_bytes_per_s":5.2e9,"write_bytes_per_s":$bytes,"latency_s":0}]}
	END
    model="--model synthetic:llama-3.1-8b --gpu H100 --gpus 1"
    evp-replay -q --assume 3:0.9 $model --tiers tiers.json --engine-cache 0 --trace trace.jsonl --warm 0 --policy prefill,lru,lru+3x -o replay.tsv 2>>said
    evp-gain -q trace.jsonl $model --hbm 0 --dram 16G --ssd 128G --ssd-write $write --json >gain.json 2>>said
    python3 - $write <<'END'
import csv, json, sys
rows = {r["policy"]: r for r in csv.DictReader(open("replay.tsv"), delimiter="\t")}
caches = {c["cache"] if c["compression_x"] is None else c["compression_x"]: c for c in json.load(open("gain.json"))["caches"]}
dropped = []
for policy, cache in ("prefill", "none"), ("lru", 1), ("lru+3x", 3):
    r, g = rows[policy], caches[cache]
    assert 1 / 1.5 < float(r["ttft_mean_s"]) / g["ttft_s"] < 1.5, (policy, r, g)
    written = float(r["bytes_written"]) + float(r["bytes_dropped"])
    assert abs(float(r["bytes_dropped"]) - g["writes_dropped_bytes"]) <= written / 10, (policy, r, g)
    dropped.append(float(r["bytes_dropped"]) > 0)
print("SSD writes", sys.argv[1], "dropped", dropped)
END
done

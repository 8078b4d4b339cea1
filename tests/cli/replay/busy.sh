# What is too busy is said in words and stands in the table, in evp-show and on the page, with what was replayed; times of
# batches are spread; without --gpus there are the fewest that suffice.
command -v python3 >/dev/null || skip "python3 is not installed"
python3 - <<'END'
import json, random
r = random.Random(6)
def put(name, unit, requests):
    with open(name, "w") as f:
        for at, document, i in requests:
            ids = [document * 100 + t for t in range(12)] + [100000 + i]
            f.write(json.dumps({"timestamp": round(at // unit * unit), "input_length": len(ids) * 512, "hash_ids": ids}) + "\n")
now, requests = 0, []
for i in range(2000):
    now += r.expovariate(1 / 110)
    requests.append((now, int(r.paretovariate(0.5)) % 100, i))
put("exact", 1, requests)
put("seconds", 1000, requests)
put("minutes", 60000, requests)
put("batches", 1, [(i // 20 * 2345, document, i) for i, (_, document, _) in enumerate(requests)])
put("one", 1, [(0, document, i) for i, (_, document, _) in enumerate(requests[:20])])
END
tiers() { # bytes per second that the SSD reads and writes
    cat >tiers.json <<-END
	{"evp":"tiers","version":1,"tiers":[
	{"name":"dram","kind":"dram","uri":"/dev/shm/x","capacity_bytes":$((8 << 30)),"read_bytes_per_s":51.2e9,"write_bytes_per_s":51.2e9,"latency_s":0},
	{"name":"ssd","kind":"file","uri":"/tmp/x","capacity_bytes":$((256 << 30)),"read_bytes_per_s":$1,"write_bytes_per_s":$2,"latency_s":0}]}
	END
}
replay() { evp-replay --assume 3.6:0.97 --model synthetic:llama-3.1-8b --gpu H100 --engine-cache 0 --tiers tiers.json "$@" 2>said; grep -o 'warning.*' said; }
tiers 5.2e9 2.8e9
echo "-- one GPU"
replay --trace exact --policy prefill,lru+3.6x --gpus 1 -o r.tsv
evp-show r.tsv | sed -n 2p
evp-show r.tsv | awk '/prefill|lru/ { print $1, $(NF - 1), ($NF > 0.95) }'
echo "-- enough GPUs"
replay --trace exact --policy prefill,lru+3.6x -o r.tsv
evp-show r.tsv --json | tr ',' '\n' | grep inputs
evp-report r.tsv -o page.html 2>/dev/null
grep -o 'Replayed: [^<]*' page.html
grep -c '177;' page.html
echo "-- an SSD that reads too slowly, and one that writes too slowly"
tiers 200e6 20e9
replay --trace exact --policy lru -o r.tsv
tiers 5.2e9 100e6
replay --trace exact --policy lru -o r.tsv
echo "-- one after the other"
replay --trace exact --policy lru --rate 0 -o r.tsv
cut -f 1,2,29-31 r.tsv
echo "-- times"
tiers 5.2e9 2.8e9
for trace in seconds minutes batches one; do replay --trace $trace --policy prefill -o $trace.tsv; done
replay --trace exact --policy prefill -o exact.tsv
python3 - <<'END'
import csv
ttft = {n: float(next(csv.DictReader(open(n + ".tsv"), delimiter="\t"))["ttft_mean_s"]) for n in ("exact", "seconds", "minutes")}
print([n for n in ttft if .8 < ttft[n] / ttft["exact"] < 1.25])
END
evp-gain minutes --model synthetic:llama-3.1-8b --gpu H100 --dram 1G 2>&1 | grep -o 'warning.*times.*'

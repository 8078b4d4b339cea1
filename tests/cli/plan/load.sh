# A rate of requests: waits are priced, the plan changes with them, and says its prices; more than there is, is refused.
cp "$DATA/table.h5" .
cat >tiers.json <<-END
	{"evp":"tiers","version":1,"tiers":[
	{"name":"dram","kind":"dram","uri":"/dev/shm/x","capacity_bytes":20000,"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":0.001},
	{"name":"ssd","kind":"file","uri":"/tmp/x","capacity_bytes":150000,"read_bytes_per_s":1e8,"write_bytes_per_s":1e8,"latency_s":0.01}]}
END
where() { sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)","tier":"\([^"]*\)".*/\1 \2 \3/p' "$1" | tr '\n' ';'; }
for rate in 0.0001 0.3 8; do
	evp-plan table.h5 --tiers tiers.json --alpha 10 --rate $rate -o m.jsonl 2>&1 | sed -n 's/evp-plan: \(load .*\)/\1/p'
	evp-plan -q table.h5 --verify m.jsonl && echo "verified $(where m.jsonl)"
done
evp-plan -q table.h5 --tiers tiers.json --alpha 10 -o without.jsonl && where without.jsonl && echo
# Its numbers, from the formulas of docs/planning.md
python3 - <<'END'
import json
rows = [json.loads(line) for line in open("m.jsonl")]
head, rows = rows[0], rows[1:-1]
load, tiers, rate = head["load"], head["tiers"], 8
rho = load["gpu_use"]
square = load["gpu_square"]
all_ = sum(r["frequency"] for r in rows)
read = {t["name"]: sum(r["frequency"] / all_ * rate * r["bytes"] for r in rows if r["tier"] == t["name"]) / t["read_bytes_per_s"] for t in tiers}
assert all(abs(read[t["name"]] - u) < 1e-12 for t, u in zip(tiers, load["tier_use"])), (read, load)
for r in rows:
    t = next((i for i, t in enumerate(tiers) if t["name"] == r["tier"]), None)
    read_s = 0 if t is None else tiers[t]["latency_s"] + r["bytes"] / tiers[t]["read_bytes_per_s"]
    gpu_s = r["ttft_s"] - read_s
    cost = gpu_s * (load["gpu_linear"] + gpu_s * load["gpu_square"]) + (0 if t is None else r["bytes"] * load["byte_prices"][t])
    assert abs(r["utility"] - (head["alpha"] * r["quality"] - r["ttft_s"] - cost) * r["frequency"]) < 1e-9, r
print("utilities: with the prices")
END
sed '1s/"gpu_square":[^,]*/"gpu_square":0.5/' m.jsonl >bad.jsonl && evp-plan -q table.h5 --verify bad.jsonl 2>&1 | sed 's/is [0-9.e-]* in/is U in/; s/[0-9.e-]* by the table/T by the table/'
sed '1s/"gpus":1/"gpus":0/' m.jsonl >bad.jsonl && evp-plan -q table.h5 --verify bad.jsonl 2>&1
sed '1s/"byte_prices":\[[^]]*\]/"byte_prices":[1]/' m.jsonl >bad.jsonl && evp-plan -q table.h5 --verify bad.jsonl 2>&1
for more in "--rate 100000" "--rate 100000 --gpus 900000" "--rate 1 --online" "--rate 1 --parallel-reads 2" "--rate -1"; do
	evp-plan -q table.h5 --tiers tiers.json --alpha 10 $more -o n.jsonl 2>&1 | head -n 1
	rm n.jsonl 2>/dev/null && echo written
done
# Beside a cap on what is written, and a target.
evp-plan -q table.h5 --tiers tiers.json --alpha 10 -o first.jsonl
for cap in 30K 70K 130K; do
	evp-plan -q table.h5 --tiers tiers.json --alpha 10 --rate 0.5 --previous first.jsonl --max-move $cap -o n.jsonl &&
		evp-plan -q table.h5 --verify n.jsonl --previous first.jsonl && echo "verified with $cap"
done
# In replay: the same plan for few requests; for many the one with prices keeps up.
evp-replay -q table.h5 --tiers tiers.json --trace poisson:1,4000 --contexts zipf:0 --alpha 10 --rate 0.01,0.6 --policy night,night:load >r.tsv
awk -F'\t' 'NR == 1 { next } $1 == "night" { ttft = $5; next } { print $2, ($5 < ttft ? "sooner" : $5 > ttft ? "later" : "as soon") }' r.tsv
evp-replay -q table.h5 --tiers tiers.json --trace poisson:1,40 --contexts zipf:0 --rate 0 --policy night:load 2>&1 | head -n 1
evp-replay -q table.h5 --tiers tiers.json --trace poisson:1,40 --contexts zipf:0 --rate 1 --policy night:prices 2>&1 | head -n 1

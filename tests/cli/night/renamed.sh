# The server is renamed from the third night on, and its log is of another form from the fifth: not one context more is stored,
# none is stored twice, and nothing is left out.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
sed -i 's/"budget_s"/"forget_days":0,&/' nightly.json
run_night() { evp-nightly -v --config nightly.json >night.log 2>&1; }
for n in 1 2 3 4 5 6; do
	begin_night
	[ $n -lt 3 ] || sed -i 's/"model": "m"/"model": "other"/' world/requests.log.$n
	[ $n -lt 5 ] || python3 - world/requests.log.$n <<'END2'
import json, sys
rows = [json.loads(l) for l in open(sys.argv[1])]
with open(sys.argv[1], "w") as f:
    for r in rows:
        f.write(json.dumps({"timestamp": r["timestamp"], "prompt": f"User: {r['messages'][0]['content']}\nAnswer:"}) + "\n")
END2
	run_night
	echo "night $n: status $?"
	grep 'left out\|error:' night.log
	python3 - <<'END2'
import json
rows = [json.loads(l) for l in open("world/manifest.jsonl")][1:-1]
placed = [r for r in rows if r.get("payload")]
print(f"{len(rows)} rows, {len({r['token_digest'] for r in rows})} texts; {len(placed)} placed, {len({r['token_digest'] for r in placed})} texts")
END2
done

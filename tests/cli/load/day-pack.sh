# What an engine cannot make from its rows alone is queued: the live plan wants a context under a method that scores its tokens;
# day.jsonl says so, evp-pack makes it, evp-load places it, and it is found.
. "$TOP/tests/cli/load/python.inc"
"$python" - <<-END
	import json
	with open("c.jsonl", "w") as c, open("q.jsonl", "w") as q:
	    for k, id in enumerate("abc"):
	        c.write(json.dumps({"id": id, "text": f"The fox {id} jumps. " + " ".join(str(k * i % 17) for i in range(12)), "ask": " {question}"}) + "\n")
	        for i in range(6):
	            q.write(json.dumps({"id": f"{id}/{i}", "context": id, "split": "train", "text": f"Who {i}?"}) + "\n")
	        print(json.dumps({"context": id, "at": 100 * k}), file=open(f"access-{id}.jsonl", "w"))
END
model="--model $DATA/tiny.gguf"
evp-profile c.jsonl q.jsonl $model --configs none,knorm:drop=0.5 --max-new-tokens 4 -q -o p.h5 2>/dev/null
evp-score p.h5 --embedder "$DATA/minibert" -q -o t.h5 2>/dev/null || exit
echo '{"evp":"tiers","version":1,"tiers":[{"name":"dram","kind":"dram","uri":"'"$PWD"'/dram","capacity_bytes":8000,"configs":["knorm"],
"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":0}]}' >tiers.json
evp-plan t.h5 --tiers tiers.json --access access-a.jsonl --online --alpha 0 -q -o m.jsonl || exit
place() { evp-pack -q "$1" c.jsonl $model -o payloads && evp-load -q "$1" --payloads payloads; }
held() { evp-show --json dram | grep -o '"context":"[^"]*","n_tokens":[0-9]*,"config":"[^"]*"'; }
place m.jsonl && held
evp-show $model c.jsonl --ids c >ids
cat >use.py <<-END
	import json, sys, threading
	import evp
	from evp.day import Day
	day, answered = Day("day.jsonl", "m.jsonl"), threading.Semaphore(0)
	tokens = [int(i) for i in open("ids").read().split()]
	for _ in range(40): # an engine that computes it, and can make none of what the plan wants
	    day.used(tokens + [1, 2, 3], 0, lambda said: (said and print("to put:", said), answered.release()))
	    answered.acquire(timeout=30)
	with evp.open("day.jsonl") as store:
	    found = store.find(tokens + [1])
	    print("found:", found and found.config)
END
"$python" use.py
place day.jsonl && held
sed -i '/^\tfor\|^for/,/acquire/d' use.py
"$python" use.py

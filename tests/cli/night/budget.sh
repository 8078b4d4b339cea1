# evp-nightly with a budget: a sample of the contexts; from the second night on the plan in force is checked on new questions, or
# on answers that were served. Contexts that are served worse answers than their plan promised are profiled again.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
sed -i 's/"budget_s":0/"budget_s":6000/' nightly.json
make_log() { # every night other questions
	python3 - "$1" <<-'END'
		import json, sys
		night = int(sys.argv[1])
		for c in range(8):
		    text = " ".join(f"{word}{c}-{i}" for i in range(16) for word in ("section", "says"))
		    for k in range(20 - 2 * c):
		        print(json.dumps({"model": "m", "timestamp": 1.7e9 + 86400 * night + k,
		                          "messages": [{"role": "user", "content": f"{text}\n\nWhat is part {k} on day {night}?"}]}))
	END
}
steps() {
	python3 - <<-'END'
		import json, os
		last = max(os.listdir("world/nights"))
		night = json.load(open(f"world/nights/{last}/night.json"))
		print(int(last), night["status"], " ".join(s["step"] for s in night["steps"]))
		for s in night["steps"]:
		    if s["step"] == "drift":
		        r = s["result"]
		        print("    served:" if "--served" in s["command"] else "    computed:", r["contexts"] > 0, r["answers"] > 0, r["moved"] > 0)
		    if s["step"] == "profile-drifted":
		        print("    profiled again:", s["result"]["contexts"] > 0)
	END
}
for n in 1 2; do
	night || tail -n 3 night.log
	steps
done
# Nothing but silence is served, where the uncompressed cache says a word.
python3 - <<'END'
import json
placed = [p for p in map(json.loads, list(open("world/manifest.jsonl"))[1:-1]) if p.get("payload") and p["config"] != "none"]
with open("world/served.log", "w") as f:
    for p in placed:
        for k in range(40):
            for config, answer in ("none", "Paris"), (p["config"], ""):
                print(json.dumps({"context": p["id"], "question": f"What now, {k}?", "config": config, "answer": answer}), file=f)
END
sed -i 's/"alpha"/"served":["served.log"],"false_alarms":0.5,"alpha"/' nightly.json
night || tail -n 3 night.log
steps

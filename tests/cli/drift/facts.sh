# evp-drift --facts watches what an answer says and does: a refusal, a list that became prose, a number, which similarity does
# not see. Served answers need no embedder then. A state of similarities is not one of facts.
/usr/bin/python3 - <<'END' | "$BUILD/tests/tools/make-profile" p.h5 tiny
print("config\tnone\t1\nconfig\tknorm:drop=0.5\t0.5")
for c in "abcd":
    print(f"context\t{c}")
    for k in range(14):
        print(f"question\ttrain\tThe dog Rex has {k + 20} bones.\tThe dog Rex has {k + 20} bones.")
END
/usr/bin/python3 - <<'END'
import json
answer = lambda k: f"- {k + 20} bones\n- the dog Rex"
served = {"a": answer, "b": lambda k: "I'm sorry, but I cannot name them.",
          "c": lambda k: answer(k).replace("- ", "").replace("\n", " and "), "d": lambda k: answer(k).replace(str(k + 20), str(k + 21))}
with open("served.jsonl", "w") as f, open("new.jsonl", "w") as new:
    for c in "abcd":
        for k in range(14):
            new.write(json.dumps({"id": f"{c}/n{k}", "context": c, "split": "train", "text": f"What has dog {k}?", "asked_at": k}) + "\n")
            for config, text in ("none", answer(k)), ("knorm:drop=0.5", served[c](k)):
                f.write(json.dumps({"context": c, "question": f"What has dog {k}?", "config": config, "answer": text, "time": k}) + "\n")
END
evp-score p.h5 --embedder "$DATA/minibert" -q -o t.h5 2>/dev/null
sed 's/"capacity_bytes":[0-9]*/"capacity_bytes":10000/' "$DATA/tiers.json" >tiers.json
evp-plan t.h5 --tiers tiers.json --alpha 0 -q >m.jsonl
grep -c '"config":"knorm:drop=0.5","tier":' m.jsonl
watch() { evp-drift t.h5 m.jsonl --questions new.jsonl --served served.jsonl -o l.jsonl "$@" 2>&1 | grep -v 'next:'; }
watch --facts --state s.jsonl
sed -n '2{s/"wealth.*"asked/"asked/; p}' s.jsonl
watch --facts --state s.jsonl # nothing new: what moved stays in the list
watch --embedder "$DATA/minibert" --state s.jsonl | grep -e moved

# A dry run that says hours ends with the same command for one hour; one that takes less does not, nor one with a sample.
python3 - <<'END'
import json
with open("c.jsonl", "w") as c, open("q.jsonl", "w") as q:
    for i in range(300):
        print(json.dumps({"id": f"c{i}", "text": f"{i} is a number, and so on. " * 280}), file=c)
        for k in range(2):
            print(json.dumps({"id": f"c{i}-{k}", "context": f"c{i}", "text": "What?", "split": ["train", "test"][k]}), file=q)
END
try() { evp-profile c.jsonl q.jsonl --model synthetic:smollm2-135m "$@" 2>&1 | grep 'next\|an hour\|error'; }
configs='knorm:drop=0.1..0.9/0.02,keydiff:drop=0.1..0.9/0.02'
try -n -c "$configs"
try -c "$configs" --dry-run -o p.h5 --max-new-tokens 16
try -n -c "$configs" --sample 10 || echo none
head -n 1 c.jsonl >one.jsonl && head -n 2 q.jsonl >asked.jsonl
evp-profile one.jsonl asked.jsonl --model synthetic:smollm2-135m -n 2>&1 | grep next || echo none

# The reuse in a real trace: contexts, their uses and how many questions they have are those that a tree of the trace's own
# blocks gives. Equal ids of the trace become equal texts.
trace=$SHARED/datasets/traces/mooncake_conversation_trace.jsonl
[ -f "$trace" ] || skip "no trace at \$SHARED/datasets/traces"
command -v python3 >/dev/null || skip "python3 is not installed"
cat >make.py <<'END'
"""make.py TRACE ROWS MIN_USES - writes log.jsonl; prints the prefixes of blocks that have MIN_USES requests of their own."""
import json, random, sys
from collections import defaultdict
rows = [json.loads(line)["hash_ids"] for line, _ in zip(open(sys.argv[1]), range(int(sys.argv[2])))]
least = int(sys.argv[3])
def block(i):
    r = random.Random(i)
    return "".join(r.choice("abcdefghijklmnopqrstuvwxyz    ") for _ in range(511)) + "\n"
with open("log.jsonl", "w") as f:
    for n, ids in enumerate(rows):
        f.write(json.dumps({"prompt": "".join(map(block, ids)) + f"{n} what?"}) + "\n")
uses = defaultdict(int)
for ids in rows:
    for k in range(1, len(ids) + 1):
        uses[tuple(ids[:k])] += 1
taken, chosen = defaultdict(int), {}
for p in sorted(uses, key=len, reverse=True):
    own = uses[p] - taken[p]
    if len(p) >= 2 and own >= least:
        chosen[p] = own
        taken[p[:-1]] += uses[p]
    else:
        taken[p[:-1]] += taken[p]
for p in chosen:
    print(len(p) * 512, chosen[p], block(p[-1])[:40])
END
python3 make.py "$trace" 1500 3 | sort >want
evp-import -q --requests log.jsonl --min-uses 3 --per-context 50 -o out
python3 - <<'END' | sort >got
import json
rows = {n: [json.loads(l) for l in open(f"out/{n}.jsonl")][1:-1] for n in ("contexts", "questions", "access")}
count = {a["context"]: a["count"] for a in rows["access"]}
for c in rows["contexts"]:
    print(len(c["text"]), count[c["id"]], c["text"][-512:-472])
END
wc -l <want
cmp want got

# Questions from the text itself: the same bytes twice, both splits in turn, ids that name the context.
python3 - >c.jsonl <<'END'
import json
for name in "ab":
    text = " ".join(f"In the year {1500 + i} merchant number {i * 7} of {name}town sold {i * 3} boats to a fisher."
                    for i in range(60))
    print(json.dumps({"id": name, "text": text}))
END
evp-qgen -q c.jsonl --per-context 5 >one.jsonl || exit 9
evp-qgen -q c.jsonl --per-context 5 >two.jsonl || exit 9
cmp one.jsonl two.jsonl || exit 8
evp-qgen -q <c.jsonl --per-context 5 -o three.jsonl --seed 1 || exit 9
cmp -s one.jsonl three.jsonl && echo "another seed gives the same questions"
python3 - <<'END'
import json
rows = [json.loads(line) for line in open("one.jsonl")][1:-1]
texts = {r["text"] for r in rows}
print(len(rows), len(texts), [(r["id"], r["split"], r["origin"]) for r in rows])
END
evp-qgen -q c.jsonl --per-context 5 --shard 2/2 | grep '"id"' >half.jsonl
grep '"b/' one.jsonl | cmp - half.jsonl && echo "a shard is a part of the whole"

# A question that many users ask is no context of its own, wherever the border of a chunk falls: 16 documents of 20
# requests each stay 16 contexts of 20 uses, with 9 questions each.
command -v python3 >/dev/null || skip "python3 is not installed"
for length in 40 120 400; do
	for kind in bodies vllm; do
		python3 "$TOP/tests/cli/import/requests-popular.py" $length $kind >log
		evp-import -q --requests log --per-context 20 -o out 2>said || cat said
		python3 - $length $kind <<'END'
import collections, json, sys
rows = {n: [json.loads(l) for l in open(f"out/{n}.jsonl")][1:-1] for n in ("contexts", "questions", "access")}
count = {a["context"]: a["count"] for a in rows["access"]}
asked = collections.Counter(q["context"] for q in rows["questions"])
print(*sys.argv[1:], collections.Counter((count[c["id"]], asked[c["id"]], c["text"][-2:]) for c in rows["contexts"]),
      collections.Counter(len(q["text"]) for q in rows["questions"]), collections.Counter(q["split"] for q in rows["questions"]))
END
	done
done

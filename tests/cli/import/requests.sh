# Request logs: system prompts, documents and conversations that come again; compressed logs and pipes give the same.
command -v python3 >/dev/null || skip "python3 is not installed"
python3 "$TOP/tests/cli/import/requests.py" >log.jsonl
evp-import --requests log.jsonl --min-uses 3 -o none 2>&1 | tail -n 1
evp-import --requests log.jsonl --partial --min-uses 3 -o plain 2>said || echo "status $?"
cat said
grep -c 'word[0-9]\|secret' said
gzip -c log.jsonl >log.gz
evp-import -q --requests log.gz --partial --min-uses 3 -o gzipped
evp-import -q --requests --partial --min-uses 3 -o piped <log.jsonl
cat log.gz | evp-import -q --requests - --partial --min-uses 3 -o piped-gzip
for f in contexts questions access; do
	for other in gzipped piped piped-gzip; do
		tail -n +2 plain/$f.jsonl >a
		tail -n +2 $other/$f.jsonl | cmp - a
	done
done
show() {
	python3 - "$1" <<'END'
import json, sys
rows = {n: [json.loads(l) for l in open(f"{sys.argv[1]}/{n}.jsonl")][1:-1] for n in ("contexts", "questions", "access")}
count = {a["context"]: a["count"] for a in rows["access"]}
for c in rows["contexts"]:
    asked = [(q["split"], q["text"]) for q in rows["questions"] if q["context"] == c["id"]]
    print(c["id"], c["dataset"], [(t["role"], t["chars"]) for t in c["turns"]], repr(c["text"][-14:]), repr(c["ask"]), c.get("n_tokens"), count[c["id"]])
    print("   ", asked)
END
}
show plain
echo "hashed, two questions, the two best, one model, half of each use in an hour, tokens counted"
evp-import -q --requests log.jsonl --partial --min-uses 3 -o two --hash-ids --per-context 2 --top 2 --dataset large --half-life 1 \
	--min-tokens 500 --model "$DATA/tiny.gguf" --chat-template none 2>&1 | grep error
evp-import -q --requests log.jsonl --partial --min-uses 3 -o two --hash-ids --per-context 2 --top 2 --dataset large --half-life 1
show two

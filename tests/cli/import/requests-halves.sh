# --halves: uses before and after the middle of the logs' time; together they are all uses.
python3 "$TOP/tests/cli/import/requests.py" >log.jsonl
evp-import -q --requests log.jsonl --partial --min-uses 3 -o all
evp-import --requests log.jsonl --partial --min-uses 3 --halves -o halves 2>&1 | grep 'access log'
for f in all halves; do
	tail -n +2 $f/contexts.jsonl >$f.rows
done
cmp all.rows halves.rows
python3 - <<'END'
import json
read = lambda name: {r["context"]: r["count"] for r in map(json.loads, open(name)) if "context" in r}
all, after, before = read("all/access.jsonl"), read("halves/access.jsonl"), read("halves/access-before.jsonl")
assert all == {c: after.get(c, 0) + before.get(c, 0) for c in all}, (all, after, before)
print(sorted(all.values()), sorted(before.values()), sorted(after.values()))
END
sed 's/"\(timestamp\|time\|ts\|created\|startTime\)"/"when"/g' log.jsonl >timeless.jsonl
evp-import -q --requests timeless.jsonl --partial --min-uses 3 --halves -o none 2>&1 | grep -e '--halves'
mkdir stale && echo >stale/access-before.jsonl
evp-import -q --requests timeless.jsonl --partial --min-uses 3 --halves -o stale 2>/dev/null
ls stale
ls none

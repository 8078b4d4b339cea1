# No request starts that might cost more than --max-cost leaves, whatever is in flight; what is left is said, and the same
# command with a higher cap goes on. What was paid earlier, nonsense included, counts.
. "$TOP/tests/cli/qgen/mock"
for i in $(seq 40); do
	echo "{\"id\":\"c$i\",\"text\":\"The text of context $i, which says little.\"}"
done >c.jsonl
ask ok | rows >want
# A reply takes 1000 + 10 tokens; a request counts as its bytes and 100 tokens until then.
capped() {
	ask ok --price-in 1000 --price-out 1000 --reply-tokens 100 -o q.jsonl --summary s.json "$@" 2>err
	echo "status $?, $(wc -l <"$log") requests, $(grep -c '"split":"train"' q.jsonl 2>/dev/null) contexts"
	python3 -c '
import json
r = json.load(open("s.json"))["result"]
print(*(f"{k}={r[k]:g}" for k in ("contexts_left", "contexts_kept", "cost", "cost_in_all") if k in r))'
	sed 's/.*: error: //' err
	: >"$log"
}
: >"$log"
capped --max-cost 10.2
capped --max-cost 10.2
capped --max-cost 20.3 --concurrency 1
capped --max-cost 100
rows q.jsonl | cmp - want
ls q.jsonl.part 2>/dev/null
rm q.jsonl
capped --max-cost 0
ask nonsense --price-in 1000 --retries 0 -o q.jsonl 2>/dev/null
: >"$log"
capped --max-cost 30
ask uncounted --price-in 1 --max-cost 1 -o q.jsonl 2>&1 >/dev/null | grep -o 'does not say .*'
evp-qgen c.jsonl --api-base $base/ok/v1 --model m --max-cost 1
echo "without a price: $?"

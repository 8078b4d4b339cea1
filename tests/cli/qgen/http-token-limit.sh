# No request starts that might take more tokens than --token-limit leaves, whatever is in flight; what is left is said, and
# the same command with a higher limit goes on. What earlier runs took, nonsense included, counts.
. "$TOP/tests/cli/qgen/mock"
for i in $(seq 40); do
	echo "{\"id\":\"c$i\",\"text\":\"The text of context $i, which says little.\"}"
done >c.jsonl
ask ok | rows >want
# A reply takes 1000 + 10 tokens; a request counts as its bytes and 100 tokens until then.
limited() {
	ask ok --reply-tokens 100 -o q.jsonl --summary s.json "$@" 2>err
	echo "status $?, $(wc -l <"$log") requests, $(grep -c '"split":"train"' q.jsonl 2>/dev/null) contexts"
	python3 -c '
import json
r = json.load(open("s.json"))["result"]
print(*(f"{k}={r[k]}" for k in ("contexts_left", "contexts_kept", "prompt_tokens", "completion_tokens") if k in r))'
	sed 's/.*: error: //' err
	: >"$log"
}
: >"$log"
limited --token-limit 10200
limited --token-limit 10200
limited --token-limit 20300 --concurrency 1
limited --token-limit 100k
rows q.jsonl | cmp - want
ls q.jsonl.part 2>/dev/null
rm q.jsonl
ask nonsense --retries 0 -o q.jsonl 2>/dev/null
: >"$log"
limited --token-limit 30000
ask uncounted --token-limit 1M -o q.jsonl 2>&1 >/dev/null | grep -o 'does not say .*'

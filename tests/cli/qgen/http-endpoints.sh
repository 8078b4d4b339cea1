# Several endpoints share the requests. One that is unreachable, broken, refuses the key or does not know the
# model is named once, and the others do its work; the questions are those of one good endpoint.
. "$TOP/tests/cli/qgen/mock"
for i in $(seq 40); do
	echo "{\"id\":\"c$i\",\"text\":\"The text of context $i, which says little.\"}"
done >c.jsonl
ask ok | rows >want
: >"$log"
ask ok --api-base "$base/wrapped/v1" --summary s.json >got
rows got | cmp - want
cut -d/ -f2 "$log" | sort | uniq -c | sed 's/^ *//'
python3 -c '
import json
for e in json.load(open("s.json"))["result"]["endpoints"]:
    print(e["api_base"].split("/")[3], e["requests"], e["prompt_tokens"])'
for bad in http://127.0.0.1:1/v1 $base/broken/v1 $base/denied/v1 $base/no-model/v1; do
	ask ok --api-base $bad --retries 1 >got 2>err || echo "status $?"
	rows got | cmp - want
	sed 's/1:[0-9][0-9]*/1:PORT/' err
done
ask broken --api-base "$base/denied/v1" --api-base http://127.0.0.1:1/v1 --retries 0 --concurrency 1 >got 2>err
echo "none is good: $?, $(wc -c <got) bytes, $(grep -c 'is left out' err) left out, $(tail -n 1 err | grep -o 'left 3 contexts in a row')"

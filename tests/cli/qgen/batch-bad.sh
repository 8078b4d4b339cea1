# Files that are no replies of a batch are refused with the line, replies to other requests are told apart, and the cap on
# the limit of tokens bounds a batch, too.
for id in a b c; do
	echo "{\"id\":\"$id\",\"text\":\"The text of context $id, which says little.\"}"
done >c.jsonl
batch() { evp-qgen -q c.jsonl --model m "$@"; }
exec 2>&1
batch --batch-out requests
good='{"custom_id":"x","response":{"status_code":200,"body":{}},"error":null}'
while IFS= read -r line; do
	printf '%s\n%s\n' "$good" "$line" >bad
	batch --batch-in bad -o q.jsonl
	echo "status $?"
done <<'END'
nothing
7
{"custom_id":7,"response":{"status_code":200}}
{"custom_id":"x"}
{"custom_id":"x","response":null,"error":null}
{"custom_id":"x","response":[]}
{"custom_id":"x","response":{"body":{}}}
END
echo "$good" >bad
batch --batch-in bad
echo "status $?"
id=$(grep -o 'evp-[^"]*' requests | head -n 1)
echo "{\"custom_id\":\"$id\",\"response\":{\"status_code\":200,\"body\":{}}}" >bad
batch --batch-in bad
echo "status $?"
: >bad
batch --batch-in bad
echo "status $?"
batch --batch-in requests
echo "status $?"
batch --batch-out r1 --batch-in bad
echo "status $?"
batch --batch-in bad --token-limit 1
echo "status $?"
batch --batch-out r2 --token-limit 5000
echo "status $?, $(wc -l <r2) requests, $(grep -c '"max_completion_tokens":1504' r2) with a limit"
ls

# The proxy in front of llama-server, with a server that pretends: what it restores, what it leaves alone, and that a request
# goes on as it came whatever fails.
. "$TOP/tests/cli/load/python.inc"
for id in word year; do
	printf '{"id":"%s","text":"%s: the quick brown fox jumps over the lazy dog","ask":" {question}"}\n' $id $id
done >contexts.jsonl
for id in word year; do
	printf '{"id":"%s/%s","context":"%s","split":"%s","text":"hello?"}\n' $id 1 $id train $id 2 $id test
done >questions.jsonl
printf '{"evp":"tiers","version":1,"tiers":[{"name":"ssd","kind":"file","uri":"%s","capacity_bytes":1000000,"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":0}]}\n' "$PWD/ssd" >tiers.json
evp-profile -q contexts.jsonl questions.jsonl --model "$DATA/tiny.gguf" --configs keydiff:drop=0.5 --max-new-tokens 2 -o p.h5 || exit
evp-score -q p.h5 --embedder "$DATA/minibert" --tiers tiers.json --alpha 100 -o t.h5 || exit
evp-plan -q t.h5 --tiers tiers.json -o m.jsonl || exit
evp-pack -q m.jsonl contexts.jsonl --model "$DATA/tiny.gguf" -o payloads || exit
evp-load -q m.jsonl --payloads payloads || exit
timeout 50 "$python" "$TOP/tests/cli/load/llama.py" m.jsonl "$DATA/tiny.gguf" 2>proxy.err
status=$?
sort -u proxy.err | sed "s/[0-9]\{4,\}/PORT/g; s|$PWD/||g" >&2
exit $status

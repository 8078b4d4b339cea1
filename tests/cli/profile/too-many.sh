# Of many contexts that are too long a hundred are named with -v; with nothing left, nothing is written.
text=$(yes 'It was a bright cold day in April. ' | head -n 20 | tr -d '\n')
for n in 100 101; do
	for i in $(seq "$n"); do printf '{"id":"%s","text":"%s"}\n' "$i" "$text"; done >c.jsonl
	for i in $(seq "$n"); do printf '{"id":"q%s","context":"%s","split":"train","text":"What?"}\n' "$i" "$i"; done >q.jsonl
	evp-profile -v --model "$DATA/tiny.gguf" c.jsonl q.jsonl --configs none --max-new-tokens 8 -o p.h5 2>said
	echo "$n: status $?, $(grep -c 'has 720 tokens' said) named"
	grep -v 'has 720 tokens\|: model: ' said
done
ls p.h5* 2>/dev/null
:

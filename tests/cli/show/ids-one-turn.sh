# A conversation of one message of the user is what a context without turns is: every template takes it, and none at all.
printf '{"id":"a","text":"The fox jumps."}\n' >plain.jsonl
printf '{"id":"a","text":"The fox jumps.","turns":[{"role":"user","chars":14}]}\n' >turn.jsonl
printf '{"id":"a","text":"The fox jumps.","turns":[{"role":"system","chars":3},{"role":"user","chars":11}]}\n' >turns.jsonl
printf 'User: {content}\nAnswer:' >chat
for template in none chat; do
	for file in plain turn turns; do
		evp-show $file.jsonl --ids a --model "$DATA/tiny.gguf" --chat-template $template >$file
		echo "$template $file $? $(wc -w <$file)"
	done
	cmp plain turn
done

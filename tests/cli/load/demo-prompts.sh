# The contexts of evp-demo with the default model: what is placed of them is found in every prompt, tokenised whole.
model=$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf
[ -f "$model" ] || skip "no default model"
for name in Artistic Apache-2.0 GPL-1 MPL-2.0; do
	[ -r "/usr/share/common-licenses/$name" ] || skip "no licence texts"
	cp "/usr/share/common-licenses/$name" "$name.txt"
done
evp-import -q ./*.txt -o contexts.jsonl && evp-qgen -q contexts.jsonl --per-context 8 -o questions.jsonl || exit
"$BUILD/tests/tools/prompts" "$model" contexts.jsonl questions.jsonl >prompts || exit
{
	echo "tier dram file $PWD/dram -"
	grep ^context prompts | while read -r _ id _ ids; do
		echo "$ids" >"$id.ids"
		echo "ids $id.ids - - -"
		echo "context $id $(wc -w <"$id.ids") none dram"
	done
} | "$BUILD/tests/tools/make-load" m.jsonl payloads && evp-load -q m.jsonl --payloads payloads || exit
sed -n 's/.*"id":"\([^"]*\)".*"n_tokens":\([0-9]*\).*/\1: \2/p' m.jsonl | sort >placed
"$BUILD/tests/tools/prompts" "$model" contexts.jsonl questions.jsonl m.jsonl | sed 's|/[^:]*: |: |; s/ of .*//' | sort | uniq -c |
	sed 's/^ *//' >found
sed 's/^/8 /' placed | diff - found && echo "$(wc -l <found) contexts are found"

# A share of the rows, then all: existing payloads stay. A damaged payload is made again, with the same bytes.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
mkdir out
pack() { evp-pack "$DATA/pack/manifest.jsonl" "$DATA/pack/contexts.jsonl" -o out/payloads "$@"; }
pack --shard 1/3 2>one && ls out/payloads
pack 2>two && ls out/payloads
pack 2>three
cp out/payloads/fox.safetensors fox
printf x | dd of=out/payloads/fox.safetensors bs=1 seek=500000 conv=notrunc status=none
pack 2>four
cmp fox out/payloads/fox.safetensors
grep -h "payloads\\? written" one two three four >&2
grep -c 'the file is damaged; the payload is made again' four
# they say what the model says
for file in out/payloads/fox.safetensors "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf"; do
	evp-show "$file" | sed -n 's/evp-pack [0-9.]*$/evp-pack/; s/^  model name /  name       /; /^  \(producer\|name\|computed\|layers  \|heads\|kv heads\|head width\|rotated\|rope\)/p'
done

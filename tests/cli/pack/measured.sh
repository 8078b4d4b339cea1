# A size that depends on the data is compared when the variant was made; payloads of ragged heads and of streams are shown
# and checked.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
manifest() { sed "s/keydiff:drop=0.5/$config/;s/\"bytes\": 944640/\"bytes\": $1/" "$DATA/pack/manifest.jsonl" >manifest.jsonl; }
pack() { evp-pack -q --model "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" manifest.jsonl "$DATA/pack/contexts.jsonl" --shard 1/3 -o p; }
for config in adakv+snapkv:drop=0.2:window=8+kivi:bits=4 snapkv:drop=0.2:window=8+cachegen; do
	rm -rf p
	manifest 1
	pack 2>refused
	echo "$?: $(sed "s/takes [0-9]* bytes/takes N bytes/;1q" refused)"
	ls p
	bytes=$(sed -n 's/.*takes \([0-9]*\) bytes.*/\1/p' refused)
	manifest "$bytes"
	pack && ls p
	evp-show --json p/fox.safetensors >show.json
	grep -c "\"stored_bytes\":$bytes," show.json
	evp-show --check p/fox.safetensors
	evp-show p/fox.safetensors | grep -cE '^ +([0-9]+ +[0-9]+ +[0-9]+|kept) +66$'
done
rm -rf p
config=arkv:drop=0.2:window=8
manifest 1
manifest "$(pack 2>&1 | sed -n 's/.*takes \([0-9]*\) bytes.*/\1/p')"
pack && evp-show --check p/fox.safetensors
evp-show p/fox.safetensors | grep -E '^ *(n kept|packed frac)'

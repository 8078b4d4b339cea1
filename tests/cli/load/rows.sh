# Rows of payloads of every kind of config, decoded into an engine's layout, against a decoder in plain Python; what ranks of
# tensor parallelism read; the list of what is placed.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
. "$TOP/tests/cli/load/python.inc"
# pack BYTES [-v]: the same context under every config, each under a name of its own; BYTES names a file with their sizes.
pack() {
	sed -n 1p "$DATA/pack/manifest.jsonl" >manifest.jsonl
	grep -n . configs | while IFS=: read -r number config; do
		sed -n 2p "$DATA/pack/manifest.jsonl" | sed "s/keydiff:drop=0.5/$config/; s/\"bytes\": 944640/\"bytes\": $(sed -n "${number}p" "$1")/
			s/fox/$(printf %02d "$number")/g"
	done >>manifest.jsonl
	echo "{\"end\": true, \"rows\": $(grep -c . configs)}" >>manifest.jsonl
	evp-pack ${2:--q} --model "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" manifest.jsonl contexts.jsonl -o .
}
for config in none kivi:bits=4 kivi:bits=2:group=64:residual=64 keydiff:drop=0.5 snapkv:drop=0.2:window=8+kivi:bits=4 \
	pyramidkv:drop=0.5:window=8 adakv+snapkv:drop=0.5:window=8 adakv+snapkv:drop=0.2:window=8+kivi:bits=2 \
	cachegen cachegen:cdf=chunk keydiff:drop=0.5+cachegen adakv+snapkv:drop=0.2:window=8+cachegen \
	fp8 snapkv:drop=0.5:window=8+fp8:scale=token adakv+snapkv:drop=0.2:window=8+fp8:scale=one \
	arkv:drop=0.2:window=8 snapkv:drop=0.5:window=8+cam:window=8 \
	chunkkv:length=7+snapkv:drop=0.5:window=8 kvzip:drop=0.2 impress:load=0.1:chunk=4 impress:load=0.1:chunk=4:reorder=yes \
	int4 snapkv:drop=0.5:window=8+nvfp4 snapkv:drop=0.8:window=8+turboquant:bits=4 \
	snapkv:drop=0.8:window=8+turboquant:bits=3:rotation=qr:outliers=32:norm=f32 \
	adakv+snapkv:drop=0.8:window=8+turboquant:bits=3:values=uniform adakv+snapkv:drop=0.8:window=8+int8:group=16; do
	echo "$config"
done >configs
for number in $(grep -n . configs | cut -d: -f1); do
	sed -n 2p "$DATA/pack/contexts.jsonl" | sed "s/\"id\": \"fox\"/\"id\": \"$(printf %02d "$number")\"/"
done >contexts.jsonl
sed s/.*/1/ configs >ones
# Each refusal says the right size.
pack ones -v 2>&1 | sed -n "s/.*context '\(..\)'.* takes \([0-9]*\) bytes.*/\1 \2/p" | sort | cut -d ' ' -f 2 >sizes
pack sizes || exit
mkdir fast slow
sed -n 1p "$DATA/pack/manifest.jsonl" | sed "s|\[{.*}\]|[{\"name\":\"fast\",\"kind\":\"dram\",\"uri\":\"$PWD/fast\",\"capacity_bytes\":null,\"read_bytes_per_s\":1e9,\"write_bytes_per_s\":1e9,\"latency_s\":0},{\"name\":\"slow\",\"kind\":\"dram\",\"uri\":\"$PWD/slow\",\"capacity_bytes\":null,\"read_bytes_per_s\":1e9,\"write_bytes_per_s\":1e9,\"latency_s\":0}]|" >store.jsonl
sed 1d "$DATA/pack/manifest.jsonl" >>store.jsonl
"$python" "$TOP/tests/cli/load/python_rows.py" store.jsonl ??.safetensors

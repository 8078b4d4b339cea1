# Weights are sent to the device as they are in the file, whatever the device's type is, and each once: with all else 1.1
# times their bytes. Only where the output matrix of a tied model would round its embedding, that is sent as well.
. "$TOP/tests/cli/cuda/device.inc"
sent() {
	cp -r "$DATA/tiny" model
	rm model/model*
	bytes=$(python3 "$TOP/tests/cli/cuda/load.py" model "$1")
	EMU_COUNTS=$PWD/counts evp-profile c.jsonl q.jsonl --model model --backend cuda --dtype "$2" --dry-run -q || return
	awk -v bytes="$bytes" -v what="$1 to $2" '/^copy host to device, bytes/ { n = $NF }
		END { printf "%s: %.1f\n", what, n / bytes }' counts
	grep '^device allocations' counts
	rm -r model counts
}
sed -i 's/"text":"[^"]*"/"text":"A fox."/' c.jsonl
sent BF16 bf16
sent BF16 f32
sent F16 f32
sent F16 bf16
# The device's copy finds what is not finite, and the tensor is named: in rows that are copied in parts and shared by
# threads, in another type than the device's too.
bad() {
	cp -r "$DATA/tiny" model
	rm model/model*
	python3 "$TOP/tests/cli/cuda/load.py" model "$1" >bytes
	python3 "$TOP/tests/cli/cuda/not_finite.py" model/model.safetensors "$3" "$4"
	evp-profile c.jsonl q.jsonl --model model --backend cuda --dtype "$2" --dry-run -q 2>&1
	rm -r model
}
bad BF16 bf16 model.layers.3.mlp.up_proj.weight 262143
bad F16 bf16 model.layers.0.self_attn.v_proj.weight 300
bad F32 f32 model.layers.2.mlp.down_proj.weight 0
bad BF16 bf16 model.embed_tokens.weight 2047999

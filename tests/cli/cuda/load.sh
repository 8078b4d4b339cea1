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

# Without --dtype a GPU computes in the type of the model's weights, f32 as f32 and all else as bf16, and the first lines
# say which and why: of evp-profile on one device and on two, and of evp-pack. A FILE with answers in another type keeps it.
. "$TOP/tests/cli/cuda/device.inc"
export EMU_DEVICES=2
why() { grep -o 'computing in .*\|in bf16\>\|in f32\>\|error: .*' "$1" | sort -u; }
run() {
	evp-profile c.jsonl q.jsonl --configs knorm:drop=0.5 --max-new-tokens 2 --decode-times off "$@" 2>said
	why said
}
for type in F16 F32; do
	cp -r "$DATA/tiny" $type
	rm $type/model*
	python3 "$TOP/tests/cli/cuda/load.py" $type $type >/dev/null
	echo "$type"
	run --model $type --dry-run
done
echo tiny.gguf
run --model "$DATA/tiny.gguf" --devices 0,1 -o p.h5
evp-score -q p.h5 --embedder "$DATA/minibert" -o table.h5 2>/dev/null
evp-plan -q table.h5 --tiers "$DATA/tiers.json" -o m.jsonl && evp-pack m.jsonl c.jsonl --model "$DATA/tiny.gguf" -o pay 2>said
why said
run --model "$DATA/tiny.gguf" --dtype f32 -o f32.h5
run --model "$DATA/tiny.gguf" -o f32.h5 --configs keydiff:drop=0.5
run --model "$DATA/tiny.gguf" -o f32.h5 --configs keydiff:drop=0.9 --dtype bf16

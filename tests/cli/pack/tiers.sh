# What a tier holds already is not made again; --list says what is made, and makes nothing.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
sed "s|/dev/shm/evp|$PWD/dram|" "$DATA/pack/manifest.jsonl" >m.jsonl
sed -n '1s/.*"tiers": \(\[.*\]\), "solver.*/{"evp":"tiers","version":1,"tiers":\1}/p' m.jsonl >t.json
pack() { evp-pack m.jsonl "$DATA/pack/contexts.jsonl" -o pay "$@"; }
pack --tiers t.json --list -q
[ -e pay ] && echo "a list makes payloads"
pack -q && rm pay/fox.safetensors && pack --tiers t.json --list -q
pack -q && evp-load -q m.jsonl --payloads pay && rm -r pay
pack --tiers t.json --list 2>said
grep -o 'to do.*' said
pack --tiers t.json --namespace others --list -q
pack --tiers t.json 2>&1 | grep -o '0 payloads.*'
find dram/evp-payloads -type f -size -980k -delete
pack --tiers t.json 2>&1 | grep -o '1 payload .*already there.*' | sed 's/([^)]*)/SIZE/'
evp-load -q m.jsonl --payloads pay && pack --tiers t.json --list -q
printf x >t.json && pack --tiers t.json
echo "status $?"
pack --namespace x
echo "status $?"

# A config that no method can read is reported, and the status is 1.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
sed 's/keydiff:drop/keydaff:drop/' "$DATA/pack/manifest.jsonl" >manifest.jsonl
evp-pack -q manifest.jsonl "$DATA/pack/contexts.jsonl" --shard 1/3 -o p

# One text is changed and one context is missing: each is reported, the third payload is written, status 1.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
sed 's/The quick/The slow/; s/"id": "ships"/"id": "boats"/' "$DATA/pack/contexts.jsonl" >contexts.jsonl
sed 's/"config": "none", "tier": "recompute", "bytes": 0/"config": "none", "tier": "dram", "bytes": 1359360/; s/"operation": "none", "payload": null/"operation": "insert", "payload": "sums.safetensors"/' "$DATA/pack/manifest.jsonl" >manifest.jsonl
evp-pack -q manifest.jsonl contexts.jsonl -o p
status=$?
ls p
exit $status

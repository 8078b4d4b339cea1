# A manifest made for another model is refused before anything is written.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
sed 's/"model_digest": "b179/"model_digest": "0000/' "$DATA/pack/manifest.jsonl" >manifest.jsonl
evp-pack manifest.jsonl "$DATA/pack/contexts.jsonl" -o p
status=$?
[ ! -e p ] && exit $status

# Without a device --backend cuda ends with status 5, and auto computes on the CPU and says why.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
export EVP_CUDA_PLUGIN="$BUILD/tests/plugins/no_driver.so"
evp-pack "$DATA/pack/manifest.jsonl" "$DATA/pack/contexts.jsonl" -o out -q --backend cuda
echo "status $?, $(ls)" >&2
evp-pack "$DATA/pack/manifest.jsonl" "$DATA/pack/contexts.jsonl" -o out --shard 1/3

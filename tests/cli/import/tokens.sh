# Lengths in tokens of the default model; the limit counts what has the right length.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no models"
cp "$DATA/longbench/ten.jsonl" .
evp-import -q ten.jsonl --model "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" | grep -o '"n_tokens":[0-9]*' | tr '\n' ' '
echo
evp-import -q ten.jsonl --min-tokens 60 --max-tokens 66 | sed -n 's/^{"id":"\([^"]*\)".*/\1/p' | tr '\n' ' '
echo
evp-import ten.jsonl --min-tokens 1000
echo $?
evp-import ten.jsonl --model no/such.gguf 2>/dev/null
echo $?

# The model is named first. Without --model the default one is used with a warning, and not at all for contexts of a log that
# names another model; with --model that is a warning, unless the names are spelt differently only.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
log() {
	text=$(printf 'Section %s says that the hens of Reginald slept in house %s for a year. ' $(seq 60))
	for k in 1 2 3 4; do
		printf '{"model":"%s","messages":[{"role":"user","content":"%s\\n\\nWhat is %s?"}]}\n' "$1" "$text" $k
	done >requests.log
	evp-import -q --requests requests.log -o mine
}
profile() {
	evp-profile mine/contexts.jsonl mine/questions.jsonl --configs none --only train --truncate -n "$@" 2>&1 |
		grep 'model: \|log of' | sed "s|$DATA|DATA|"
}
log org/Tiny
profile
evp-profile mine/contexts.jsonl mine/questions.jsonl -n -q; echo "status $?"
evp-pack "$DATA/pack/manifest.jsonl" mine/contexts.jsonl -q -o p; echo "status $?"
profile --model "$DATA/tiny.gguf" # a file of it
log org/Huge
profile --model "$DATA/tiny.gguf"
profile --model "$DATA/tiny.gguf" -q
log HuggingFaceTB/smollm2-135m-INSTRUCT # the default one
profile
# A data set of that name is no model
evp-qgen -q mine/contexts.jsonl --per-context 2 -o asked.jsonl
sed '1d; $d; s|"dataset":"[^"]*"|"dataset":"org/Huge"|' mine/contexts.jsonl >plain.jsonl
evp-profile plain.jsonl asked.jsonl --configs none --only train --truncate -n 2>&1 | grep 'model: '
# a log read here in place of there
log org/Huge
evp-import --requests requests.log --min-tokens 100 -o mine 2>&1 | grep 'model: '
EVP_MODELS=. evp-profile mine/contexts.jsonl mine/questions.jsonl --model SmolLM2 -n -q; echo "status $?"
EVP_MODELS=. evp-profile plain.jsonl asked.jsonl -n; echo "status $?"

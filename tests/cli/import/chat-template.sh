# --chat-template: a file of one's own, none, and the way out where a model's template is not known; what needs no template
# works without.
model=$DATA/tiny
cp -r "$model" odd && chmod -R u+w odd
for name in tokenizer_config.json chat_template.jinja; do [ ! -f "odd/$name" ] || python3 - "odd/$name" <<'PY'
import json, sys
text = open(sys.argv[1]).read()
if sys.argv[1].endswith(".jinja"):
    text = "{{ messages }}"
else:
    text = json.dumps(json.loads(text) | {"chat_template": "{{ messages }}"})
open(sys.argv[1], "w").write(text)
PY
done
printf '{"id":"a","text":"hello world hello"}\n' >rows.jsonl
count() { evp-import -q rows.jsonl "$@" | grep -o '"n_tokens":[0-9]*'; }
printf '<|im_start|>user\n{content}<|im_end|>' >short
printf 'no place' >wrong
count --model "$model"
count --model "$model" --chat-template short
count --model "$model" --chat-template none
count --model odd --chat-template short
evp-import -q rows.jsonl --model odd --min-tokens 1 || echo "status $?"
evp-import -q rows.jsonl --model odd --chat-template wrong || echo "status $?"
evp-import -q rows.jsonl --model odd --chat-template absent || echo "status $?"
printf 'hello\n' >text
evp-show odd --tokenize text
evp-show --check odd

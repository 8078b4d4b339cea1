# Tokens are counted with config.json and tokenizer.json alone, also of a model that cannot be profiled.
mkdir m && cp "$DATA"/tiny/tokenizer.json m/
printf '{"id":"a","text":"one two three"}\n{"id":"b","text":"%s"}\n' "$(seq -s ' ' 200)" >c.jsonl
for model in '{"model_type":"gemma3","text_config":{"model_type":"gemma3_text"}}' '{"model_type":"of_next_year"}' '{'; do
    echo "$model" >m/config.json
    evp-import c.jsonl --model m --min-tokens 50 -o out.jsonl 2>&1 | grep error
    [ ! -e out.jsonl ] || grep -o '"id":"[ab]"\|"n_tokens":[0-9]*' out.jsonl
    rm -f out.jsonl
done

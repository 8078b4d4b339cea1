# What a prompt begins with is found: profiled, planned, packed and loaded, then asked for with prompts tokenised whole.
# In this model "hello", " world", " hello" and two blanks are tokens, so what follows can change the last of each text.
{
	printf '{"id":"word","text":"Words: the quick brown fox, hell","ask":"o {question}"}\n'
	printf '{"id":"blank","text":"Blanks: over the lazy dog. ","ask":"{question}"}\n'
	printf '{"id":"stop","text":"Stops: in the wor","ask":"ld {question}"}\n'
	printf '{"id":"year","text":"Years: in 1920","ask":"{question}"}\n'
} >contexts.jsonl
for id in word blank stop year; do
	printf '{"id":"%s/%s","context":"%s","split":"%s","text":"%s"}\n' $id 1 $id train 'hello who?' $id 2 $id test ' 20 times?'
done >questions.jsonl
for tier in dram ssd; do
	printf '{"name":"%s","kind":"file","uri":"%s","capacity_bytes":1000000,"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":0}\n' $tier "$PWD/$tier"
done | paste -s -d , | sed 's/.*/{"evp":"tiers","version":1,"tiers":[&]}/' >tiers.json
evp-profile -q contexts.jsonl questions.jsonl --model "$DATA/tiny.gguf" --configs keydiff:drop=0.5 --max-new-tokens 2 -o p.h5 || exit
evp-score -q p.h5 --embedder "$DATA/minibert" --tiers tiers.json --alpha 100 -o t.h5 || exit
evp-plan -q t.h5 --tiers tiers.json -o m.jsonl || exit
evp-pack -q m.jsonl contexts.jsonl --model "$DATA/tiny.gguf" -o payloads || exit
evp-load -q m.jsonl --payloads payloads || exit
grep -o '"id":"[a-z]*"\|"n_tokens":[0-9]*' m.jsonl | paste -d ' ' - -
"$BUILD/tests/tools/prompts" "$DATA/tiny.gguf" contexts.jsonl questions.jsonl m.jsonl

# kvzip: the model repeats each context once, apart from the prefills; its variants have what all heads share, and are
# packed and read back.
for c in a b; do
	printf '{"id":"%s","text":"The fox %s jumps over Reginald in the garden of the old house.","ask":" {question}"}\n' $c $c
done >c.jsonl
for c in a b; do
	printf '{"id":"%s1","context":"%s","split":"train","text":"What is name 1?"}\n' $c $c
done >q.jsonl
evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens 6 -v -o p.h5 \
	-c kvzip:drop=0.5,kvzip:drop=0.5:prefix=kvpress,kvzip:drop=0.9:over=layer,h2o:drop=0.5 2>&1 |
	grep -o 'the model repeated 2 contexts in\|.*error.*'
evp-score p.h5 --embedder "$DATA/minibert" -q -o t.h5
evp-show t.h5 | grep -E '^ *(none|kvzip|h2o)' | awk '{ print $1, $2, $3 }'
evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl -o x.h5 -c kvzip:drop=0.5:over=heads 2>&1
evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl -o x.h5 -c adakv+kvzip:drop=0.5 2>&1

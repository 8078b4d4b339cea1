# A model of random weights runs the whole pipeline, in f32 and in bf16; a second run gives the same answers. A name that
# is none is refused.
model=synthetic:tiny
for id in a b; do
	printf '{"id":"%s","text":"%s","ask":" {question}"}\n' $id "The fox of $id jumps over the dog. $(seq -s ' ' 60)"
done >c.jsonl
for id in a b; do
	printf '{"id":"q%s","context":"%s","split":"train","text":"Who jumps?"}\n' $id $id
	printf '{"id":"r%s","context":"%s","split":"test","text":"Over what?"}\n' $id $id
done >q.jsonl
profile() {
	evp-profile c.jsonl q.jsonl --model $model --max-new-tokens 4 --configs knorm:drop=0.5,kivi:bits=4 -q "$@"
}
SOURCE_DATE_EPOCH=0 profile -o p.h5 && profile -o again.h5 || exit
# Where the processor has no bf16, the reference has.
profile --dtype bf16 -o bf16.h5 2>no || { grep -q 'no fast bf16' no && profile --backend reference --dtype bf16 -o bf16.h5; } || exit
answers() { "$BUILD/tests/tools/answers" "$1"; }
answers p.h5 >first && answers again.h5 | cmp first - && cut -d, -f 1-5 first >all && cat all || exit
answers bf16.h5 | cut -d, -f 1-3,5 >bf16 && cut -d, -f 1-3,5 all | cmp bf16 -
evp-score -q p.h5 --embedder "$DATA/minibert" --prefill-tokens-per-s 1 --tiers "$DATA/tiers.json" -o table.h5 &&
	evp-plan -q table.h5 --tiers "$DATA/tiers.json" -o m.jsonl && evp-pack -q m.jsonl c.jsonl --model $model -o pay || exit
evp-show pay/* | grep 'model digest' | sort -u # recomputing takes minutes, so both are packed
evp-show synthetic:tiny | grep 'model digest'
printf synthetic:tiny | sha256sum
evp-show --tokenize c.jsonl synthetic:tiny | cut -c1-19
model=synthetic:huge
profile -o huge.h5
echo "status $?" >&2

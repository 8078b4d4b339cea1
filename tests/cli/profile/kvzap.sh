# kvzap: fitted to kvzip's scores, profiled and packed by the file; without the file, or with a wrong one, a sentence.
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
for c in a b; do
	printf '{"id":"%s","text":"The fox %s jumps over Reginald in the garden of the old house.","ask":" {question}"}\n' $c $c
done >c.jsonl
for c in a b; do
	printf '{"id":"%s1","context":"%s","split":"train","text":"What is name 1?"}\n' $c $c
done >q.jsonl
profile() { evp-profile c.jsonl q.jsonl --max-new-tokens 2 --temperature 0 --decode-times off -q "$@" || echo "status $?"; }
tiny() { profile --model "$DATA/tiny.gguf" "$@"; }
{
tiny -o p.h5 -c kvzip:drop=0.5 --fit-kvzap tiny.safetensors
tiny -o p.h5 -c kvzap:drop=0.5,kvzap:drop=0.9+int4:group=16 --kvzap tiny.safetensors
evp-score p.h5 --embedder "$DATA/minibert" -q -o t.h5
evp-show t.h5 | grep -E '^ *(none|kvz)' | awk '{ print $1, $2, $3 }'
tiny -o p.h5 -c kvzip:drop=0.5 --fit-kvzap again.safetensors # nothing is left to run
tiny -o x.h5 -c knorm:drop=0.5 --fit-kvzap x.safetensors
tiny -o x.h5 -c kvzap:drop=0.5
tiny -o x.h5 -c kvzap:drop=0.5 --kvzap c.jsonl
tiny -o x.h5 -c kvzap:drop=0.5 --kvzap absent
profile -o x.h5 -c kvzap:drop=0.5 --kvzap tiny.safetensors
profile -o s.h5 -c kvzip:drop=0.5 --fit-kvzap s.safetensors
sed 's/keydiff:drop=0.5/kvzap:drop=0.5/; s/ 944640,/ 956520,/' "$DATA/pack/manifest.jsonl" >manifest.jsonl
pack() { evp-pack -q manifest.jsonl "$DATA/pack/contexts.jsonl" --shard 1/3 -o p "$@" || echo "status $?"; }
pack
pack --kvzap tiny.safetensors
pack --kvzap s.safetensors && evp-show --check p/*.safetensors
} 2>&1 | grep -v 'for demonstrations'
ls -- *.safetensors

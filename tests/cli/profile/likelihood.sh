# --measure likelihood: variants judge the uncompressed cache's answers; the profile resumes, one measure is not mixed with the
# other, and a plan follows.
{
	for c in a b c; do
		printf '{"id":"%s","text":"The fox %s jumps over Reginald in the garden of the old house.","ask":" {question}"}\n' $c $c
	done
} >c.jsonl
{
	for c in a b c; do
		for q in 1 2 3 4; do
			printf '{"id":"%s%s","context":"%s","split":"%s","text":"What is name %s?"}\n' $c $q $c "$([ $q -gt 2 ] && echo test || echo train)" $q
		done
	done
} >q.jsonl
profile() { evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens 6 -q -c knorm:drop=0.8,keydiff:drop=0.5 "$@"; }
profile --measure likelihood -o p.h5 || exit
profile --temperature 0 -o a.h5 || exit
profile --measure likelihood --shard 1/2 -o half.h5 && profile --measure likelihood -o half.h5 || exit
for p in p a half; do
	evp-score $p.h5 --embedder "$DATA/minibert" -q -o $p-table.h5
	evp-show --json $p-table.h5 >$p.json
done
python3 - <<'END'
import json
tables = [json.load(open(f"{p}.json")) for p in ("p", "a", "half")]
quality = [[c["quality_train"] for c in t["configs"]] for t in tables]
assert quality[0] == quality[2], quality
assert quality[0][0] == 1 and all(0 < q <= 1 for q in quality[0]) and quality[0][1:] != quality[1][1:], quality
print("a quality for", [c["config"] for c in tables[0]["configs"]])
END
evp-plan p-table.h5 --tiers "$DATA/tiers.json" --alpha 0.001 -q -o m.jsonl && evp-plan -q p-table.h5 --verify m.jsonl && echo verified
profile --temperature 0 -o p.h5 2>&1
profile --measure likelihood -o a.h5 2>&1
evp-score p.h5 a.h5 -q -o both.h5 2>&1
profile --measure likelihood --temperature 0.3 -o t.h5 2>&1
evp-score p.h5 --embedder "$DATA/minibert" -o p-table.h5 2>&1 | grep 'mean quality'

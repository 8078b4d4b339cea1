# What a profile says of its making: the time, who asked, the course of the prefill, the digests of prefixes; evp-score
# adds deviations and numbers.
text=$(yes 'A bright cold day in April. ' | head -n 5 | tr -d '\n')
printf '{"id":"a","text":"%s","ask":" {question}"}\n' "$text" >c.jsonl
{
	echo '{"evp":"questions","version":1,"tool":"t","args":[],"from":[],"api":{"model":"m","per_context":2}}'
	printf '{"id":"q%s","context":"a","split":"train","text":"What?","origin":"%s"}\n' 1 api 2 dataset 3 offline 4 ''
	echo '{"end":true,"rows":4}'
} >q.jsonl
profile() {
	evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens 2 --configs knorm:drop=0.5 -q -o "$@"
}
SOURCE_DATE_EPOCH=1700000000 profile p.h5
evp-show p.h5 | grep -E 'origins|points|^  a |^  backend' | sed 's/cpu-[a-z0-9]*/cpu/; s/  *[0-9]*\.[0-9][0-9] / SPREAD /g; s/  *[0-9.]* [mu]\{0,1\}s/ TIME/g'
before=$(date +%s)
SOURCE_DATE_EPOCH=yesterday profile now.h5
at=$(date -d "$(evp-show --json now.h5 | grep -o '20[0-9-]*T[0-9:]*Z')" +%s)
[ "$before" -le "$at" ] && [ "$at" -le "$(date +%s)" ] || echo "profiled at $at, not now"
evp-score -q p.h5 --embedder "$DATA/minibert" -o table.h5
evp-show --json table.h5 | grep -o '"train_std":[^,]*,"n_train_questions":[^,]*\|"n_test_questions":[^,}]*'

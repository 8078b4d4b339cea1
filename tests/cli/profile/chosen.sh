# Planning sees the train questions alone. The chosen variants answer the test questions afterwards; the plan stays what
# it was and gets its held-out quality. What is done is not done again.
for id in a b c; do
	printf '{"id":"%s","text":"The fox %s jumps over %s. %s","ask":" {question}"}\n' $id $id $id "$(seq -s ' ' 40)"
done >c.jsonl
for id in a b c; do
	printf '{"id":"%s1","context":"%s","split":"train","text":"Who jumps?"}\n' $id $id
	printf '{"id":"%s2","context":"%s","split":"test","text":"Over what?"}\n' $id $id
	printf '{"id":"%s3","context":"%s","split":"test","text":"Where?"}\n' $id $id
done >q.jsonl
profile() { evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --max-new-tokens 3 -q -o p.h5 "$@"; }
score() { evp-score p.h5 --embedder "$DATA/minibert" -q -o t.h5; }
plan() { evp-plan t.h5 --tiers tiers.json --alpha 0 -q; } # so that everything is compressed as far as can be
count() { "$BUILD/tests/tools/answers" p.h5 | grep -v '"n_tokens":-1' | sed 's/.*"question":"..*\([123]\)".*/question \1/' | sort | uniq -c | tr -s ' '; }
sed 's/"latency_s":[0-9.e-]*/"latency_s":0/; s/"capacity_bytes":[0-9]*/"capacity_bytes":5000/' "$DATA/tiers.json" >tiers.json
profile --only train --configs knorm:drop=0.5,knorm:drop=0.9 || exit
count
score && plan >m.jsonl || exit
profile --chosen m.jsonl && count && cp p.h5 done.h5 || exit
profile --chosen m.jsonl && cmp p.h5 done.h5 || exit
score && plan >after.jsonl || exit
for m in m after; do
	sed 's/"\(quality_[a-z_]*\|tested\)":[^,}]*/"\1":0/g; s/"table_digest":"[^"]*"//g; s/"from":.*"model_digest"/"model_digest"/' $m.jsonl >$m.bare
done
cmp m.bare after.bare && grep -c '"quality_test":null' m.jsonl
grep '"id"' after.jsonl | grep -c '"quality_test":null'
# What the plan has and the inputs lack is counted; what says otherwise is refused; without anything to ask nothing is done.
sed -n '1,2p' c.jsonl >few.jsonl
evp-profile few.jsonl q.jsonl --model "$DATA/tiny.gguf" --max-new-tokens 3 -q --chosen m.jsonl -o few.h5 2>&1
grep -v '"split":"test"' q.jsonl >train.jsonl
evp-profile c.jsonl train.jsonl --model "$DATA/tiny.gguf" --max-new-tokens 3 -q --chosen m.jsonl -o none.h5 2>&1
ls none.h5 2>/dev/null
for more in "--configs none" "--sample 2" "--cells m.jsonl"; do
	profile --chosen m.jsonl $more 2>&1
	echo "status $?"
done
profile --chosen c.jsonl 2>&1
echo "status $?"

# Every wrong input of evp-aim ends with one sentence: tables of other models and configs, priors, budgets, combinations.
for id in a b c d; do
	printf '{"id":"%s","text":"The fox %s jumps over %s. %s","ask":" {question}"}\n' $id $id $id "$(seq -s ' ' 40)"
done >c.jsonl
for id in a b c d; do
	for k in 1 2 3; do printf '{"id":"%s%s","context":"%s","split":"train","text":"Who %s?"}\n' $id $k $id $k; done
done >q.jsonl
model="--model $DATA/tiny.gguf --max-new-tokens 3"
try() {
	evp-aim c.jsonl q.jsonl "$@" -q -o l.jsonl 2>&1 | sed "s|$DATA|DATA|; 1q"
	[ -e l.jsonl ] && echo "a list was written" && rm l.jsonl
}
try $model
try $model --configs knorm:drop=2
try $model --configs knorm:drop=0.5 --budget lots
try $model --configs knorm:drop=0.5 --budget 200%
try $model --configs knorm:drop=0.5 --budget 10
try $model --configs knorm:drop=0.5 --run
try $model --configs knorm:drop=0.5 --rounds 2
try $model --configs knorm:drop=0.5 --rounds 2 --run --audit 3
try $model --test m.jsonl --audit 3
evp-profile c.jsonl q.jsonl $model --configs knorm:drop=0.5 -q -o p.h5 && evp-score p.h5 --embedder "$DATA/minibert" -q -o t.h5 || exit
try p.h5 $model --tiers "$DATA/tiers.json"
try t.h5 $model
try "$DATA/table.h5" $model --tiers "$DATA/tiers.json"
try t.h5 $model --tiers "$DATA/tiers.json" --prior p.h5
try t.h5 $model --tiers "$DATA/tiers.json" --prior "$DATA/table.h5"
evp-profile c.jsonl q.jsonl $model --configs keydiff:drop=0.5 -q -o k.h5 && evp-score k.h5 --embedder "$DATA/minibert" -q -o k-table.h5 || exit
try t.h5 $model --tiers "$DATA/tiers.json" --prior k-table.h5
evp-score p.h5 --embedder "$DATA/minibert" -q -o x.h5 --prior k-table.h5 >said 2>&1; status=$?
grep -v "are noisy" said # on a busy machine
echo $status
# A prior instead of a pilot, and a list that names a config its header does not.
evp-aim c.jsonl q.jsonl $model --tiers "$DATA/tiers.json" --configs knorm:drop=0.5 --prior t.h5 -q -o l.jsonl 2>&1; echo $?
grep -c "^{.context" l.jsonl
printf '{"evp":"cells","version":1,"split":"train","configs":["none","knorm:drop=0.5"]}\n{"context":"a","configs":["knorm:drop=0.9"],"questions":["a1"]}\n{"end":true,"rows":1}\n' >bad.jsonl
evp-profile c.jsonl q.jsonl $model --cells bad.jsonl -q -o new.h5 2>&1; echo $?
# Rounds whose answers would not go with the table end before anything is computed.
for other in "--model $DATA/tiny-llama3.gguf --max-new-tokens 3" "--model $DATA/tiny.gguf --max-new-tokens 4"; do
	evp-aim c.jsonl q.jsonl t.h5 $other --tiers "$DATA/tiers.json" --rounds 2 --run -q -o other 2>&1; echo $?
	[ -e other/profile.h5 ] && echo "something was computed"
done
# Budgets that are none, and one that no pilot keeps within.
rm l.jsonl
for budget in 0% -5% nan% inf% 1e308% 100.1% '12 %' '' % 0 -1 nan 1e400; do
	try $model --configs knorm:drop=0.5 --budget "$budget"
done
evp-aim c.jsonl q.jsonl $model --configs knorm:drop=0.5 --budget 1% -o l.jsonl 2>&1 | sed "s|$DATA|DATA|"
# Questions about no context are left out and counted, as evp-profile does.
sed 's/"context":"d"/"context":"z"/; p; s/"id":"/"id":"again-/' q.jsonl | sed '/again/s/"context":".*","split/"context":"y","split/' >odd.jsonl
for k in $(seq 100); do printf '{"id":"o%s","context":"o%s","split":"train","text":"Who?"}\n' $k $k; done >>odd.jsonl
evp-aim c.jsonl odd.jsonl $model --configs knorm:drop=0.5 -q -o l.jsonl 2>&1 | tail -n 2
evp-aim c.jsonl odd.jsonl $model --configs knorm:drop=0.5 -q -o l.jsonl 2>/dev/null; echo $?

# What does not belong together is refused by name, before anything is computed, and nothing is written: another model, other
# tokens, other sizes, states that are none.
. "$TOP/tests/cli/drift/drift.inc"
try() {
	drift night1.jsonl -o l.jsonl "$@" 2>&1 | sed "s|$DATA|DATA|"
	ls l.jsonl* 2>/dev/null
}
edited() {
	cp m.jsonl good.jsonl
	sed "$1" good.jsonl >m.jsonl
	try
	mv good.jsonl m.jsonl
}
echo "the plan"
edited 's/"model_digest":"./"model_digest":"f/'
edited '2s/"token_digest":"../"token_digest":"ff/'
edited '2s/"n_tokens":[0-9]*/"n_tokens":12/'
edited '2s/"bytes":[0-9]*/"bytes":77/'
edited '2s/knorm:drop=0.9/knorm:drop=0.8/'
edited '3,$d'
echo "the contexts"
cp c.jsonl good.jsonl
sed '2s/"text"/"n_tokens":12,"text"/' good.jsonl >c.jsonl
try
sed '2s/jumps/jumpt/' good.jsonl >c.jsonl
try
sed 2d good.jsonl >c.jsonl
drift night1.jsonl -o l.jsonl 2>&1 | grep evp-drift
rm -r l.jsonl l.jsonl.d
mv good.jsonl c.jsonl
echo "the model"
for other in "$DATA/tiny-llama3.gguf" synthetic:tiny; do
	evp-drift table.h5 m.jsonl --contexts c.jsonl --questions night1.jsonl --model "$other" -q -o l.jsonl 2>&1 | sed "s|$DATA|DATA|"
done
printf 'User: {content}\nAnswer:' >chat
try --chat-template chat
cp table.h5 good.h5
cp p.h5 table.h5 && try
mv good.h5 table.h5
echo "the state"
row='{"context":"c0","config":"knorm:drop=0.9","questions":12,"wealth":[1,2,3],"asked_until":5}'
state() {
	printf '%s\n' "$@" >s.jsonl
	cp s.jsonl before
	try --state s.jsonl
	cmp s.jsonl before
}
header='{"evp":"drift","version":1}'
state "$row"
state "$header" "$row"
state '{"evp":"cells","version":1}' "$row" '{"end":true,"rows":1}'
state "$header" "$row" "$row" '{"end":true,"rows":2}'
state "$header" "${row%,*}}" '{"end":true,"rows":1}'
for bad in '[1,2]' '[1,2,3,4]' '[1,2,-3]' '[1,2,1e31]' '[1,2,"3"]' 1; do
	state "$header" "$(echo "$row" | sed "s/\[1,2,3\]/$bad/")" '{"end":true,"rows":1}'
done
state "$header" "$(echo "$row" | sed 's/:5}/:-1}/')" '{"end":true,"rows":1}'
: >s.jsonl
try --state s.jsonl
echo "options"
drift night1.jsonl 2>&1
evp-drift table.h5 m.jsonl --contexts c.jsonl -q -o l.jsonl 2>&1
evp-drift table.h5 m.jsonl --questions night1.jsonl -q -o l.jsonl 2>&1
try --served log
try --false-alarms 0
evp-drift table.h5 m.jsonl --questions night1.jsonl --served log --budget 3 -q -o l.jsonl 2>&1
try --budget 1e-12 # nothing is asked
bare l.jsonl

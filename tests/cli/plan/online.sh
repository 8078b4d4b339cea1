# --online: rows carry what keeping the plan needs, also for a context without accesses so far; floors and pins with
# it. Without the option a manifest has none of it. What is carried is verified, and a lie is refused by line and field.
. "$TOP/tests/cli/plan/edit.inc"
cp "$DATA/table.h5" "$DATA/tiers.json" .
forms() { sed -n 's/.*"id":"\([^"]*\)".*"tier":"\([^"]*\)".*"payload":[^,}]*\(.*\)}$/\1 \2\3/p' "$1"; }
evp-plan -q table.h5 --tiers tiers.json --alpha 2 -o plain.jsonl && forms plain.jsonl
echo '{"context":"c1"}' >log.jsonl
printf '%s\n' '{"context":"c1","tier":"ssd"}' '{"context":"c2","min_quality":0.95}' '{"context":"c0","tier":"recompute"}' >rules.jsonl
evp-plan -q table.h5 --tiers tiers.json --alpha 2 --access log.jsonl --online -o m.jsonl && forms m.jsonl
evp-plan -q table.h5 --verify m.jsonl && evp-show --check m.jsonl
evp-plan -q table.h5 --tiers tiers.json --alpha 2 --rules rules.jsonl --min-quality 0.7 --online -o floors.jsonl && forms floors.jsonl
head -n 1 floors.jsonl | grep -o '"min_quality":[^,]*'
head -n 1 m.jsonl | grep -o '"configs":[^]]*\]'
evp-plan -q table.h5 --verify floors.jsonl --rules rules.jsonl
try 's/"bytes":\[80000/"bytes":[80001/'
try 's/"quality":\[0.6,/"quality":[0.7,/'
try 's/"prefill_s":4/"prefill_s":3/'
try 's/"kivi:bits=2"\]/"kivi:bits=3"]/'
try 's/"quality":\[0.6,/"quality":[6,/'

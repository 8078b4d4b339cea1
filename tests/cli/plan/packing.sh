# What packing takes and saves; with --pack-weight only what is worth it is packed, --verify counts it, and what is stored
# already costs nothing.
. "$TOP/tests/cli/plan/edit.inc"
cp "$DATA/table.h5" "$DATA/tiers.json" .
plan() { evp-plan table.h5 --tiers tiers.json "$@" -o m.jsonl --summary s.json 2>&1 | sed -n 's/evp-plan: \(packing .*\|utility [^;]*\).*/\1/p'; grep -o '"packing_[^,]*\|"saves_s[^,]*' s.json; }
for weight in 0 0.5 1 100; do
	echo "weight $weight:"
	plan --pack-weight $weight --online
	evp-plan -q table.h5 --verify m.jsonl && echo verified
	[ $weight = 0.5 ] && cp m.jsonl half.jsonl
done
echo 'again:'
plan --pack-weight 100 --previous half.jsonl
evp-plan -q table.h5 --verify m.jsonl --previous half.jsonl && echo verified
cp half.jsonl m.jsonl
try 's/"pack_weight":0.5/"pack_weight":0.4/'
try 's/"pack_weight":0.5/"pack_weight":-1/'
evp-plan -q table.h5 --tiers tiers.json --pack-weight -1 || echo $?

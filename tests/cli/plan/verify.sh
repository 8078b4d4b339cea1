# What evp-plan wrote verifies; a changed utility, size, tier fill or bound does not.
. "$TOP/tests/cli/plan/edit.inc"
cp "$DATA/table.h5" "$DATA/tiers.json" .
evp-plan -q table.h5 --tiers tiers.json --alpha 2 -o m.jsonl
evp-plan -q table.h5 --verify m.jsonl && echo whole
try 's/"utility":1\.9/"utility":1.8/'
try 's/"bytes":100000,"kv_bytes":100000/"bytes":99999,"kv_bytes":100000/'
try 's/"upper_bound":5.65/"upper_bound":5.55/'
try 's/"capacity_bytes":300000/"capacity_bytes":200000/'
try 's/"objective":5.5/"objective":5.6/'

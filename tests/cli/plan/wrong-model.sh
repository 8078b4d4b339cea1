# The previous manifest must be of the same model as the table.
cp "$DATA/table.h5" "$DATA/tiers.json" .
evp-plan -q table.h5 --tiers tiers.json -o one.jsonl
sed 's/"model_digest":"abab/"model_digest":"0000/' one.jsonl >other.jsonl
evp-plan table.h5 --tiers tiers.json --previous other.jsonl -o two.jsonl
status=$?
[ ! -e two.jsonl ] && exit $status

# A sweep with one plan that cannot be written ends with status 1 and without a frontier; what was written before stays.
cp "$DATA/table.h5" "$DATA/tiers.json" .
mkdir -p sweep/manifest-2.jsonl/in-the-way
evp-plan -q table.h5 --tiers tiers.json --alpha 0,2,3 -o sweep
status=$?
ls sweep
evp-plan -q table.h5 --tiers tiers.json --alpha 0,2 || [ $? = 2 ] || echo "no --output: not a misuse"
exit $status

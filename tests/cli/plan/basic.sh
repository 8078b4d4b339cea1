# A plan of the small table: summary and manifest, byte for byte.
cp "$DATA/table.h5" "$DATA/tiers.json" . && evp-plan table.h5 --tiers tiers.json --alpha 2

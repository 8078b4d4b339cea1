cp "$DATA/table.h5" "$DATA/tiers.json" . && evp-plan table.h5 --tiers tiers.json --alpha 2

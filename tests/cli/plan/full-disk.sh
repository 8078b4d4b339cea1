evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" >/dev/full

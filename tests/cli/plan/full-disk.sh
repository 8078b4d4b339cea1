# A full disk under standard output gives status 1.
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" >/dev/full

# A manifest per alpha, and the frontier: where quality counts for nothing, the smallest variants are best.
cp "$DATA/table.h5" "$DATA/tiers.json" .
evp-plan -q table.h5 --tiers tiers.json --alpha 0,2 -o sweep
ls sweep
cut -f 1-3 sweep/frontier.tsv
cut -f 4- sweep/frontier.tsv
for a in 0 2; do evp-plan -q table.h5 --verify sweep/manifest-$a.jsonl && echo "verified $a"; done

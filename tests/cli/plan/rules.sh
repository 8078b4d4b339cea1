# Floors and pins: c1 may not be lossy, c2 must be in memory; the whole is certified under the rules.
cp "$DATA/table.h5" "$DATA/tiers.json" .
printf '{"context":"c1","min_quality":0.95}\n{"context":"c2","tier":"dram"}\n{"context":"c0","tier":"recompute"}\n' >rules.jsonl
evp-plan -q table.h5 --tiers tiers.json --rules rules.jsonl -o m.jsonl
sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)","tier":"\([^"]*\)".*/\1 \2 \3/p' m.jsonl
evp-plan -q table.h5 --verify m.jsonl --rules rules.jsonl && echo verified
evp-plan -q table.h5 --tiers tiers.json --min-quality 0.95 | grep -c '"config":"none"'

# Floors and pins: c1 may not be lossy, c2 must be in memory; the whole is certified under the rules.
cp "$DATA/table.h5" "$DATA/tiers.json" .
printf '{"context":"c1","min_quality":0.95}\n{"context":"c2","tier":"dram"}\n{"context":"c0","tier":"recompute"}\n' >rules.jsonl
evp-plan -q table.h5 --tiers tiers.json --rules rules.jsonl -o m.jsonl
sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)","tier":"\([^"]*\)".*/\1 \2 \3/p' m.jsonl
evp-plan -q table.h5 --verify m.jsonl --rules rules.jsonl && echo verified
evp-plan -q table.h5 --tiers tiers.json --min-quality 0.95 | grep -c '"config":"none"'
# The manifest knows its floors and rules: nothing but other rules must be said again, and what breaks one is found.
: >empty.jsonl
evp-plan -q table.h5 --tiers tiers.json --rules empty.jsonl -o e.jsonl && evp-plan -q table.h5 --verify e.jsonl && echo no rules
evp-plan -q table.h5 --verify m.jsonl
printf '{"context":"c2","tier":"dram"}\n{"context":"c0","tier":"recompute"}\n{"context":"c1","min_quality":0.95}\n' >same.jsonl
evp-plan -q table.h5 --verify m.jsonl --rules same.jsonl && echo in any order
printf '{"context":"c1","min_quality":0.9}\n' >other.jsonl
evp-plan -q table.h5 --verify m.jsonl --rules other.jsonl
for floors in --min-quality=0.8 "--min-quality=0.8 --sure=0.95" --min-quality-worst=0.5 --measured-only; do
	evp-plan -q table.h5 --tiers tiers.json $floors -o f.jsonl && evp-plan -q table.h5 --verify f.jsonl && echo "verified $floors"
done
evp-plan -q table.h5 --tiers tiers.json -o f.jsonl
sed '1s/"alpha":/"min_quality":0.95,"sure_z":0,"alpha":/' f.jsonl >bad.jsonl
evp-plan -q table.h5 --verify bad.jsonl
echo "status $?"

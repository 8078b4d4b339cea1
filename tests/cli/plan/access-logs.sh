# Logs add up, compressed or not, with counts of any kind; a log of other contexts is refused, and writes nothing.
cp "$DATA/table.h5" "$DATA/tiers.json" .
printf '{"context":"c2","count":2.5}\n{"context":"c0"}\n' >a.jsonl
printf '{"context":"c2","count":0.25}\n' | gzip >b.jsonl.gz
printf '{"context":"c1"}\n' | xz >c.xz
counts() {
	sed -n 's/.*"id":"\([^"]*\)".*"frequency":\([0-9.e-]*\).*/\1 \2/p' "$1"
}
evp-plan -q table.h5 --tiers tiers.json --access a.jsonl --access b.jsonl.gz --access c.xz -o m.jsonl
counts m.jsonl
evp-plan -q table.h5 --verify m.jsonl && echo verified
evp-plan -q table.h5 --tiers tiers.json --access a.jsonl --access-floor 0.5 -o m.jsonl
counts m.jsonl
rm m.jsonl
printf '{"context":"x"}\n{"context":"y"}\n' >other.jsonl
evp-plan -q table.h5 --tiers tiers.json --access a.jsonl --access other.jsonl -o m.jsonl
echo "status $?, $(ls m.jsonl 2>/dev/null)"
printf '{"context":"x"}\n{"context":"y"}\n{"context":"c0"}\n' >third.jsonl
evp-plan -q table.h5 --tiers tiers.json --access third.jsonl -o m.jsonl
echo "status $?"
printf '{"context":"x"}\n{"context":"c0"}\n' >half.jsonl
evp-plan -q table.h5 --tiers tiers.json --access half.jsonl -o m.jsonl && echo half is enough
evp-plan -q table.h5 --tiers tiers.json --access third.jsonl --access-min-match 30% -o m.jsonl && echo so is a third
printf '{"context":"c0"}\n' | gzip | head -c 20 >cut.gz
evp-plan -q table.h5 --tiers tiers.json --access cut.gz -o n.jsonl
echo "status $?"
# Counts of the period before teach how many uses follow how many; a later log tells what the plan brings.
printf '{"context":"c0","count":4}\n{"context":"c1"}\n' >before.jsonl
printf '{"context":"c0","count":2}\n{"context":"c2","count":6}\n' >now.jsonl
printf '{"context":"c2"}\n{"context":"c9"}\n' >later.jsonl
evp-plan table.h5 --tiers tiers.json --access now.jsonl --access-before before.jsonl --access-test later.jsonl -o n.jsonl 2>&1 |
	sed -n 's/evp-plan: \(later log: .*\|mean over all .*\)/\1/p'
counts n.jsonl
evp-plan -q table.h5 --verify n.jsonl && echo verified
echo "with a rate the printed TTFTs have the waits in them, those of newcomers too:"
evp-plan table.h5 --tiers tiers.json --access now.jsonl --access-before before.jsonl --rate 0.05 -o n.jsonl 2>&1 |
	sed -n 's/evp-plan: \(mean over all .*\|load .*\|this plan.*\|recompute .*\)/\1/p'
evp-plan -q table.h5 --tiers tiers.json --access-before before.jsonl -o n.jsonl
evp-plan -q table.h5 --tiers tiers.json --access now.jsonl --access-test nowhere.jsonl -o n.jsonl
echo "status $?"

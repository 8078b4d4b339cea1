# The next night: the same table again keeps everything; with less memory things move, shrink or go; a context that left
# the table is evicted.
cp "$DATA/table.h5" "$DATA/tiers.json" .
show() { sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)","tier":"\([^"]*\)".*"operation":"\([^"]*\)".*/\1 \2 \3 \4/p' "$1"; }
evp-plan -q table.h5 --tiers tiers.json --alpha 2 -o one.jsonl
evp-plan -q table.h5 --tiers tiers.json --alpha 2 --previous one.jsonl -o two.jsonl && show two.jsonl
sed 's/"capacity_bytes":300000/"capacity_bytes":120000/' tiers.json >small.json
evp-plan -q table.h5 --tiers small.json --alpha 2 --previous two.jsonl -o three.jsonl && show three.jsonl
sed 's/"id":"c0"/"id":"gone"/' one.jsonl >other.jsonl
evp-plan -q table.h5 --tiers tiers.json --alpha 2 --previous other.jsonl -o four.jsonl && show four.jsonl
grep -o '"previous":"[0-9a-f]*"' two.jsonl | cut -d'"' -f4 >said
sha256sum one.jsonl | cut -d' ' -f1 | cmp - said

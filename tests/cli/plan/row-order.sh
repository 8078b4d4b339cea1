# The order of the table's rows makes no difference to where contexts go.
cp "$DATA/table.h5" "$DATA/table-reversed.h5" "$DATA/tiers.json" .
show() { sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)","tier":"\([^"]*\)".*/\1 \2 \3/p'; }
evp-plan -q table.h5 --tiers tiers.json | show >a
evp-plan -q table-reversed.h5 --tiers tiers.json | show >b
cmp a b && wc -l <a

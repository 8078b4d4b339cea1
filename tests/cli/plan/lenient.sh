# Cells that break a rule end the reading, with row and column; --lenient leaves them out.
evp-plan "$DATA/table-bad.h5" --tiers "$DATA/tiers.json" 2>err || sed 's|/.*/||' err
evp-plan "$DATA/table-bad.h5" --tiers "$DATA/tiers.json" --lenient 2>err |
	sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)","tier":"\([^"]*\)".*/\1 \2 \3/p'
head -n 1 err
echo '{"context":"c1","tier":"tape"}' >rules.jsonl
evp-plan "$DATA/table.h5" --tiers "$DATA/tiers.json" --rules rules.jsonl 2>err || cat err
evp-plan "$DATA/table.h5" --tiers "$DATA/tiers.json" --rules rules.jsonl --lenient 2>err | grep -c '"id"'
head -n 1 err

# A cell that breaks a rule ends the reading, with row and column; so does a pin to an unknown tier.
evp-plan "$DATA/table-bad.h5" --tiers "$DATA/tiers.json" 2>err || sed 's|/.*/||' err
echo '{"context":"c1","tier":"tape"}' >rules.jsonl
evp-plan "$DATA/table.h5" --tiers "$DATA/tiers.json" --rules rules.jsonl 2>err || cat err

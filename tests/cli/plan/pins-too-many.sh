# Contexts pinned to a tier that cannot hold them all are refused.
printf '{"context":"c2","tier":"dram"}\n{"context":"c1","tier":"dram"}\n{"context":"c0","tier":"dram"}\n' >rules.jsonl
sed 's/"capacity_bytes":150000/"capacity_bytes":100000/' "$DATA/tiers.json" >tiers.json
evp-plan "$DATA/table.h5" --tiers tiers.json --rules rules.jsonl

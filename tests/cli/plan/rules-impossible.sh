# A quality floor that no variant fitting the pinned tier reaches is refused.
printf '{"context":"c2","tier":"dram","min_quality":0.9}\n' >rules.jsonl
evp-plan "$DATA/table.h5" --tiers "$DATA/tiers.json" --rules rules.jsonl

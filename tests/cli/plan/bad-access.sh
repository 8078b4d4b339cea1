# A negative count in the access log is refused, with file and line.
printf '{"context":"c0"}\n{"context":"c0","count":-1}\n' >log.jsonl
evp-plan "$DATA/table.h5" --tiers "$DATA/tiers.json" --access log.jsonl

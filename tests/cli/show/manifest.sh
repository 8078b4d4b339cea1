# the summary of a plan: what was chosen for each context, what is on each tier, and what that gains
evp-plan --solver adaptcache "$DATA/table.h5" --tiers "$DATA/tiers.json" >manifest.jsonl 2>/dev/null
evp-show manifest.jsonl | grep -v digest
evp-show --check manifest.jsonl
head -n 3 manifest.jsonl >cut.jsonl
evp-show --check cut.jsonl

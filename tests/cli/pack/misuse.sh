# Too few operands, two operands from one pipe, and a shard that does not exist are misuse.
evp-pack manifest.jsonl 2>&1 | head -n 1 >&2
evp-pack - -
evp-pack "$DATA/pack/manifest.jsonl" "$DATA/pack/contexts.jsonl" --shard 3/2

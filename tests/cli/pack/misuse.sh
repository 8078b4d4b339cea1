evp-pack manifest.jsonl 2>&1 | head -n 1 >&2
evp-pack - -
evp-pack "$DATA/pack/manifest.jsonl" "$DATA/pack/contexts.jsonl" --shard 3/2

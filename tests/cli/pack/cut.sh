# A manifest without its end line is refused.
head -n 2 "$DATA/pack/manifest.jsonl" >manifest.jsonl
evp-pack manifest.jsonl "$DATA/pack/contexts.jsonl"

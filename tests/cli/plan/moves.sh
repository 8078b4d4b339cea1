# A cap on what is written is kept to, certified; a cost per byte written keeps a plan where it is.
cp "$DATA/table.h5" "$DATA/tiers.json" .
evp-plan -q table.h5 --tiers tiers.json --alpha 2 -o one.jsonl
sed 's/"capacity_bytes":150000/"capacity_bytes":50000/' tiers.json >small.json
evp-plan table.h5 --tiers small.json --alpha 2 --previous one.jsonl --max-move 50K -o two.jsonl 2>&1 | grep -o 'write .*'
evp-plan -q table.h5 --verify two.jsonl --previous one.jsonl && echo verified
sed 's/"capacity_bytes":150000/"capacity_bytes":500000/' tiers.json >large.json
evp-plan table.h5 --tiers large.json --alpha 2 --previous one.jsonl 2>&1 >three.jsonl | grep -c 'write '
evp-plan table.h5 --tiers large.json --alpha 2 --previous one.jsonl --move-cost 1e6 2>&1 >four.jsonl | grep -c 'write '
evp-plan -q table.h5 --verify four.jsonl --previous one.jsonl && echo verified

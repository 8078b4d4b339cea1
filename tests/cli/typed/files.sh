# Swapped and wrong files are called what they are, by every reader; a table cannot come from a pipe; cut files.
. "$TOP/tests/cli/typed/said.inc"
cp "$DATA/pack/contexts.jsonl" contexts.jsonl
printf '{"id":"q0","context":"fox","text":"Who jumps?"}\n' >bare.jsonl
printf '{"evp":"questions","version":1}\n{"id":"q0","context":"fox","text":"Who jumps?"}\n{"end":true,"rows":1}\n' >questions.jsonl
printf '{"evp":"access","version":1}\n{"context":"fox","count":3}\n{"end":true,"rows":1}\n' >access.jsonl
head -c 300 manifest.jsonl >half.jsonl
gzip -c contexts.jsonl >contexts.jsonl.gz
: >empty
said evp-plan tiers.json --tiers table.h5
said evp-plan manifest.jsonl --tiers tiers.json
said evp-plan table.h5 --tiers manifest.jsonl
said evp-plan table.h5 --tiers contexts.jsonl.gz
said evp-plan table.h5 --tiers tiers.json --access questions.jsonl
said evp-plan table.h5 --tiers tiers.json --previous access.jsonl
said evp-plan table.h5 --tiers tiers.json --rules table.h5
said evp-plan - --tiers tiers.json
said evp-profile questions.jsonl contexts.jsonl -o p.h5
said evp-profile contexts.jsonl table.h5 -o p.h5
said evp-profile contexts.jsonl bare.jsonl --model table.h5 -o p.h5
said evp-qgen table.h5
said evp-qgen contexts.jsonl.gz
said evp-qgen access.jsonl
said evp-score manifest.jsonl -o t.h5
said evp-score model.gguf -o t.h5
said evp-score table.h5 --times tiers.json -o t.h5
said evp-pack contexts.jsonl manifest.jsonl
said evp-load table.h5
said evp-load tiers.json
said evp-load half.jsonl
said evp-load empty
said evp-report contexts.jsonl
said evp-import table.h5
said evp-import manifest.jsonl
said evp-tiers table.h5 --from-metrics .

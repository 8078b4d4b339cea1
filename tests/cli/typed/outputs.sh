# The folder of an output must exist, which is seen before the work, and nothing makes it; '-' only where results go there.
. "$TOP/tests/cli/typed/said.inc"
printf '{"id":"q0","context":"fox","split":"train","text":"Who jumps?"}\n' >q.jsonl
printf '{"messages":[{"role":"user","content":"Who?"}]}\n' >log.jsonl
before=$(ls)
said evp-import contexts.jsonl -o none/c.jsonl
said evp-import --requests log.jsonl -o none/mine
said evp-qgen contexts.jsonl -o none/q.jsonl
said evp-profile contexts.jsonl q.jsonl -o none/p.h5
said evp-score table.h5 -o none/t.h5
said evp-tiers --tier name=a,uri=.,read=1G,write=1G,latency=0 -o none/tiers.json
said evp-plan table.h5 --tiers tiers.json -o none/m.jsonl
said evp-plan table.h5 --tiers tiers.json --alpha 1,2 -o none/sweep/
said evp-pack manifest.jsonl contexts.jsonl -o none/payloads
said evp-load manifest.jsonl --receipt none/receipt
said evp-report table.h5 -o none/r.html
said evp-report table.h5 -o table.h5/r.html
said evp-show table.h5 --summary none/s.json
said evp-demo none/demo
said evp-score table.h5 -o t.h5 --summary -
said evp-score table.h5 -o -
said evp-profile contexts.jsonl q.jsonl -o -
said evp-load manifest.jsonl --receipt -
[ "$(ls)" = "$before" ] || ls
echo 'a folder that an option is for is made, and results go to standard output:'
evp-plan table.h5 --tiers tiers.json --alpha 1,2 -q -o sweep/ && ls sweep
evp-tiers --tier name=a,uri=.,read=1G,write=1G,latency=0 -q -o - | cut -c 1-30
evp-plan table.h5 --tiers tiers.json -q -o - | cut -c 1-30 | head -n 1
evp-report table.h5 -q -o - | head -n 1
evp-report table.h5 -o r.html 2>&1 | grep wrote

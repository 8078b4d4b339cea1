# evp-show on access logs, lists of cells, summaries and folders of payloads.
. "$TOP/tests/cli/typed/said.inc"
printf '{"evp":"access","version":1,"tool":"evp-import","args":["--requests","log"],"from":[]}\n{"context":"fox","count":3}\n{"context":"hen"}\n{"context":"fox","count":0.5}\n{"end":true,"rows":3}\n' >access.jsonl
printf '{"context":"fox","count":3}\n{"context":"hen","count":1}\n' >bare.jsonl
printf '{"context":"fox","count":-3}\n' >negative.jsonl
printf '{"evp":"access","version":1}\n{"context":"fox"}\n' >cut.jsonl
printf '{"id":"q0","context":"fox","split":"train","text":"Who jumps?"}\n{"id":"q1","context":"fox","split":"test","text":"Who sleeps?"}\n' >q.jsonl
evp-show access.jsonl bare.jsonl
evp-show --json access.jsonl
evp-show --lineage access.jsonl
evp-show --check access.jsonl bare.jsonl negative.jsonl cut.jsonl
printf '{"evp":"cells","version":1,"tool":"evp-drift"}\n{"context":"fox","configs":["knorm:drop=0.5","tova:drop=0.5"],"questions":["q0"]}\n{"end":true,"rows":1}\n' >cells.jsonl
evp-show cells.jsonl
evp-show cells.jsonl --summary summary.json >/dev/null
evp-show summary.json | grep -v seconds
printf '{"evp":"summary","version":1,"tool":"evp-load","args":[],"status":3,"error":"it failed","result":{"a":null,"tiers":[{"n":1}]}}\n' >failed.json
evp-show failed.json
evp-profile contexts.jsonl q.jsonl -c knorm:drop=0.5 --model model.gguf --chat-template none --max-new-tokens 2 -q -o p.h5
evp-score p.h5 --embedder "$DATA/minibert" --prefill-tokens-per-s 10 -q -o t.h5 2>/dev/null
evp-plan t.h5 --tiers tiers.json -q -o m.jsonl
evp-pack m.jsonl contexts.jsonl --model model.gguf --chat-template none -q -o payloads
evp-show payloads | sed "s/-[0-9a-f]*.safetensors/-DIGEST/"
printf 'no tensors' >payloads/zzz.safetensors
evp-show --check payloads
mkdir nothing
said evp-show nothing

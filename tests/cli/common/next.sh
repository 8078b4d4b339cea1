# Each tool of the way from texts to payloads ends with the command that comes next, and with -q says nothing of it.
mkdir texts
echo "The fox jumps over the dog, and the dog sleeps on. The fox is brown, and the dog is grey." >texts/fox.txt
printf '{"id":"q0","context":"fox","split":"train","text":"Who jumps?"}\n{"id":"q1","context":"fox","split":"test","text":"Who sleeps?"}\n' >q.jsonl
last() { "$@" 2>&1 >/dev/null | grep '^[^:]*: next: '; }
last evp-import texts -o c.jsonl
last evp-qgen c.jsonl -o asked.jsonl
last evp-qgen - <c.jsonl -o asked.jsonl
last evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs knorm:drop=0.5 --max-new-tokens 2 -o p.h5
last evp-score p.h5 --embedder "$DATA/minibert" -o t.h5
mkdir -m 700 dram
last evp-tiers --tier "name=dram,uri=dram,capacity=1M,read=5G,write=5G,latency=0" -o tiers.json
last evp-plan t.h5 --tiers tiers.json -o m.jsonl
last evp-plan t.h5 --tiers tiers.json --alpha 1,2 -o sweep
last evp-pack m.jsonl c.jsonl --model "$DATA/tiny.gguf" -o pay
last evp-load m.jsonl --payloads pay
last evp-plan t.h5 --tiers tiers.json >m2.jsonl
last evp-import -q texts -o c.jsonl
last evp-profile -q c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs knorm:drop=0.5 --max-new-tokens 2 -o p2.h5
true

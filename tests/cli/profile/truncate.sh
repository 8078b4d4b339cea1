# A context that was cut keeps its cut: questions that are shorter, longer and too long come later. Such a context can be
# scored, planned and packed.
text=$(yes 'It was a bright cold day in April. ' | head -n 20 | tr -d '\n')
printf '{"id":"long","text":"%s","ask":" {question}"}\n' "$text" >c.jsonl
question() { printf '{"id":"%s","context":"long","split":"train","text":"%s"}\n' "$@"; }
profile() {
	evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --configs none,knorm:drop=0.5 --max-new-tokens 4 -o p.h5 \
		--truncate "$@" 2>said
	echo "status $?"
	grep -E 'is cut|fit|left out|another' said
	evp-show p.h5 | sed -n 's/^  long  *//p' | cut -c 1-6
}
question q1 'What is it?' >q.jsonl
profile
question q2 'What?' >q.jsonl
profile
question q3 'What is it that strikes thirteen?' >q.jsonl
profile
question q4 "Who? $text" >>q.jsonl
question q5 'What is it that strikes thirteen on a bright cold day in April, and who hears it?' >>q.jsonl
profile
echo '{"evp":"tiers","version":1,"tiers":[{"name":"dram","kind":"dram","uri":"/x","capacity_bytes":null,"read_bytes_per_s":1e12,"write_bytes_per_s":1e12,"latency_s":0}]}' >tiers.json
evp-score -q p.h5 --embedder "$DATA/minibert" --tiers tiers.json -o table.h5
evp-plan -q table.h5 --tiers tiers.json --alpha 100 -o m.jsonl
evp-pack -q --model "$DATA/tiny.gguf" m.jsonl c.jsonl -o payloads
echo "pack $?"
ls payloads | wc -l

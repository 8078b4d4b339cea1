# What is not a trace, a policy, a rate; every sentence once.
replay() { evp-replay -q "$DATA/table.h5" --tiers "$DATA/tiers.json" "$@" >out 2>said; echo "status $?, $(wc -l <out) lines: $(grep -v "busy for" said | cut -d: -f3- | sed "s|$DATA/||")"; }
printf '{"context":"c0","at":1}\n{"context":"c0"}\n' >half.jsonl
printf '{"context":"c0","at":"noon"}\n' >text.jsonl
printf '{"context":"c0","at":1e400}\n' >large.jsonl
printf '{"context":"c0","at":0}\n{"context":"c0","at":1e10}\n' >long.jsonl
printf '{"context":"c0","count":1.5}\n' >part.jsonl
printf '{"context":"c%d"}\n' 0 3 4 5 6 7 8 9 10 11 12 13 >other.jsonl
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\nnever,1,2\n' >azure.csv
printf 'TIMESTAMP,ContextTokens,GeneratedTokens' >head.csv
: >empty.jsonl
for trace in half text large long part other empty; do replay --trace $trace.jsonl --policy lru; done
for trace in azure.csv head.csv nothing.csv poisson:1 poisson:0,5 poisson:1,0 poisson:x,5; do replay --trace $trace --contexts zipf:1 --policy lru; done
replay --trace poisson:1,10 --policy lru
for contexts in zipf drift:1 zipf:1,zipf zipf:-1 zipf:1,; do replay --trace poisson:1,10 --contexts $contexts --policy lru; done
for policy in mru lru+knorm:drop=0.5 lrukivi prefill+none night:x live:500 live= drift:x drift:-1 tlru tlru:x tlru:-1 priority priority:nothing.jsonl manifest manifest=nothing.jsonl; do replay --trace poisson:1,10 --contexts zipf:1 --policy $policy; done
replay --trace poisson:1,10 --contexts zipf:1 --policy lru,night --warm 0
replay --trace poisson:1,10 --contexts zipf:1 --policy lru,drift --warm 0
printf '{"timestamp":0,"input_length":600,"output_length":9,"hash_ids":[1,2]}\n' >mooncake.jsonl
for words in '--policy drift' '--policy lru --topics-change'; do
	evp-replay -q --assume 3:1 -m synthetic:llama-3.1-8b --gpu H100 --tiers "$DATA/tiers.json" --trace mooncake.jsonl $words 2>&1
done
replay --trace poisson:1,10 --contexts zipf:1
replay --trace poisson:1,10 --contexts zipf:1 --policy lru --rate fast
replay --trace poisson:1,10 --contexts zipf:1 --policy lru --alpha -1
replay --policy lru
evp-replay -q "$DATA/table.h5" --trace poisson:1,10 --contexts zipf:1 --policy lru 2>&1 | sed "s|$DATA/||"
evp-replay -q "$DATA/tiers.json" --tiers "$DATA/tiers.json" --trace poisson:1,10 --contexts zipf:1 --policy lru 2>&1 | sed "s|$DATA/||"
head -c 30 /dev/zero >cut.oracleGeneral
replay --trace cut.oracleGeneral --contexts map --policy lru
replay --trace poisson:1,10 --contexts map --policy lru
replay --trace poisson:1,10 --contexts zipf:1 --policy lru -o x.tsv --per-request x.tsv
exit 0

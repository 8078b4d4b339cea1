# Prompts of a log that begin alike, without a table, by hand: a trace of three prompts of three blocks and a short one,
# DRAM for two blocks of 64 MiB (128 KiB a token), SSD for one, both of 64 GiB/s and without latency.
cat >tiers.json <<-END
	{"evp":"tiers","version":1,"tiers":[
	{"name":"dram","kind":"dram","uri":"/dev/shm/x","capacity_bytes":134217728,"read_bytes_per_s":68719476736,"write_bytes_per_s":68719476736,"latency_s":0},
	{"name":"ssd","kind":"file","uri":"/tmp/x","capacity_bytes":67108864,"read_bytes_per_s":68719476736,"write_bytes_per_s":68719476736,"latency_s":0}]}
END
cat >trace.jsonl <<-END
	{"timestamp": 0, "input_length": 1536, "output_length": 9, "hash_ids": [1, 2, 3]}
	{"timestamp": 1000, "input_length": 1536, "output_length": 9, "hash_ids": [1, 2, 4]}
	{"timestamp": 2000, "input_length": 1536, "output_length": 9, "hash_ids": [1, 2, 3]}
	{"timestamp": 3000, "input_length": 100, "output_length": 9, "hash_ids": [5]}
END
replay() { evp-replay -q -m synthetic:llama-3.1-8b --gpu H100 --engine-cache 0 --tiers tiers.json --trace trace.jsonl --warm 0 "$@"; }
# Shares of the prompts that LRU finds: 0; 2/3 in DRAM; 2/3 in DRAM (1, 2) for 3 left SSD when 4 came there; 0.
replay --assume 3:0.7 --policy prefill,lru,lru+3x,belady --rate 0 >r.tsv
echo "status $?"
awk -F'\t' '{ print $1, $10, $14, $15, $16, $17 }' r.tsv
awk -F'\t' -v n=4 '
	function prefill(n, found,    token, pair, flop) {
		flop = .5 * 989e12
		token = 2 * 32 * (4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 14336) / flop
		pair = 4 * 32 * 4096 / flop
		return (n - found) * (token + pair * (n + found) / 2)
	}
	function near(a, b) { return (a - b) ^ 2 < 1e-16 }
	$1 == "prefill" { print "computed", near($5, (3 * prefill(1536, 0) + prefill(100, 0)) / n) }
	$1 == "lru" { print "read", near($5, (prefill(1536, 0) + 2 * (prefill(1536, 1024) + 1024 / 524288) + prefill(100, 0)) / n) }' r.tsv
refused() { "$@" 2>&1 | head -1; }
refused replay --assume 3 --policy lru
refused replay --assume 3:1.5 --policy lru
refused replay --assume 3:0.7,3:0.8 --policy lru
refused replay --assume 3:0.7 --policy lru+4x
refused replay --assume 3:0.7 --contexts zipf:1 --policy lru
refused replay --assume 3:0.7 --policy lru "$DATA/table.h5" | sed "s|$DATA/||"
refused evp-replay -q --assume 3:0.7 -m synthetic:llama-3.1-8b --tiers tiers.json --trace trace.jsonl --policy lru
refused evp-replay -q --tiers tiers.json --trace trace.jsonl --policy lru
refused evp-replay -q "$DATA/table.h5" --gpu H100 --tiers tiers.json --trace trace.jsonl --policy lru
# In steps: one after the other, the first token is as before, and each further one reads weights and KV.
replay --assume '' --policy prefill --rate 0 --batch --output-tokens 3 >b.tsv
awk -F'\t' '
	function near(a, b) { return (a - b) ^ 2 < 1e-16 }
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
	NR == 2 {
		weights = 2 * 32 * (4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 14336)
		kv = 131072 * (3 * (2 * 1536 + 3) + 2 * 100 + 3) / 4 / 2 # mean of four requests, of two steps after 1 and 2 tokens
		print "tokens", near($at["itl_s"], (weights + kv) / (.8 * 3.35e12)), near($at["e2e_s"], $at["ttft_mean_s"] + 2 * $at["itl_s"])
	}' b.tsv
# Answers as long as the trace says: 9 tokens.
replay --assume '' --policy prefill --rate 0 --batch >o.tsv
ends='NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
	NR == 2 { print "answers", (($at["e2e_s"] - $at["ttft_mean_s"]) / $at["itl_s"] + 1) }'
awk -F'\t' "$ends" o.tsv
batch() { evp-replay -q "$DATA/table.h5" --tiers tiers.json --contexts zipf:1 --policy prefill --rate 0 --warm 0 --batch -m synthetic:llama-3.1-8b --gpu H100 "$@"; }
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50.9,396,46\r\n' >azure.csv
batch --trace azure.csv | awk -F'\t' "$ends"
printf 'Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n' >burst.csv
batch --trace burst.csv | awk -F'\t' "$ends"
batch --trace burst.csv --output-tokens 5 | awk -F'\t' "$ends"
sed -i 's/,18,/,x,/' burst.csv
refused batch --trace burst.csv
sed -i 's/,x,/,-1,/' burst.csv
refused batch --trace burst.csv
echo '{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":8192,"intermediate_size":28672,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,"vocab_size":128256,"rms_norm_eps":1e-5,"rope_theta":500000,"max_position_embeddings":8192}' >config.json
refused evp-replay -q -m config.json --gpu H100 --tiers tiers.json --trace trace.jsonl --assume '' --policy lru --batch
refused evp-replay -q "$DATA/table.h5" --tiers tiers.json --trace trace.jsonl --policy lru --batch

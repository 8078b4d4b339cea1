# EVP_CPU leaves fewer of the processor's instructions to our loops and to oneDNN, and the table says so; a name that is
# none is a wrong command line.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
for cpu in avx2 avx512vnni; do
	EVP_CPU=$cpu evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs none --max-new-tokens 2 -q -o $cpu.h5
	echo "$cpu: $?"
done
evp-show --json avx2.h5 | grep -o '"backend":"[^"]*"'
EVP_CPU=avx2 evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs none --max-new-tokens 2 -q --dtype bf16 -o bf16.h5

# Closed standard descriptors: every tool does what it does with open ones, and no message gets into a file; only data for a
# closed standard output are a failure, status 1, and data from a closed standard input.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >in.jsonl
for split in train test; do
	printf '{"id":"%s","context":"a","split":"%s","text":"What is the name?"}\n' $split $split
done >q.jsonl
echo '{"context":"a"}' >access.jsonl
echo '{"prompt":"Who jumps?"}' >log
mkdir tier
cp -r "$DATA/tiny.gguf" "$DATA/minibert" .
# each OUTPUT TOOL...: its status with all open, with 0, 1, 2 and all of them closed; and what went astray.
each() {
	output=$1
	shift
	for closed in '' '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
		rm -rf "$output"
		eval '"$@"' '</dev/null >out 2>said' "$closed"
		printf '%s ' $?
		[ "$output" = - ] || [ -e "$output" ] || printf 'without %s ' "$output"
		grep -rqas "^$1: " "$output" out && printf 'messages in %s ' "$output"
	done
	echo "$*"
}
each c.jsonl evp-import in.jsonl -o c.jsonl
each made.jsonl evp-qgen c.jsonl -o made.jsonl
each p.h5 evp-profile c.jsonl q.jsonl --model tiny.gguf --configs knorm:drop=0.5 --max-new-tokens 2 --decode-times off -o p.h5
each t.h5 evp-score p.h5 --embedder minibert --prefill-tokens-per-s 10 -o t.h5
each tiers.json evp-tiers --tier name=far,uri=file:tier,read=1G,write=1G,latency=0.002,capacity=1G -o tiers.json
each m.jsonl evp-plan t.h5 --tiers tiers.json --access access.jsonl -o m.jsonl
each - evp-plan t.h5 --verify m.jsonl
each pay evp-pack m.jsonl c.jsonl --model tiny.gguf -o pay
each - evp-load m.jsonl --payloads pay
each page.html evp-report t.h5 m.jsonl -o page.html
each moved.jsonl evp-drift t.h5 m.jsonl --contexts c.jsonl --questions q.jsonl --model tiny.gguf -o moved.jsonl
each - evp-gain log --model synthetic:tiny --gpu L4
each - evp-replay t.h5 --tiers tiers.json --trace poisson:1,10 --contexts zipf:1 --policy lru
each - evp-show t.h5
each - evp-show --check t.h5 m.jsonl
each - evp-plan t.h5 --tiers tiers.json
each - evp-show --check -

# --summary: what each tool says at its end, as JSON; after a failure too. Every member is one of docs/formats/summary.md.
cp "$DATA/table.h5" "$DATA/tiers.json" .
printf '%s\n' '{"id":"a","text":"The fox jumps over 12 dogs, and Reginald sees it. It says 3 words."}' >c.jsonl
run() {
	"$@" --summary s.json >out 2>/dev/null
	python3 "$TOP/tests/cli/common/summary.py" "$TOP/docs/formats/summary.md" s.json $? "$@"
	rm -f s.json
}
run evp-import c.jsonl
run evp-import missing.jsonl
echo '{"prompt":"Who jumps?"}' >log
run evp-gain log --model synthetic:tiny --gpu L4
run evp-qgen c.jsonl --per-context 2
run evp-qgen c.jsonl --from-dataset
run evp-tiers --tier name=far,uri=redis://a:1,read=1G,write=1G,latency=0.002
run evp-plan table.h5 --tiers tiers.json -o m.jsonl
run evp-plan table.h5 --tiers tiers.json --alpha 1,2 -o sweep
run evp-plan table.h5 --verify m.jsonl
run evp-plan c.jsonl --tiers tiers.json
run evp-show m.jsonl
run evp-show --check m.jsonl table.h5 c.jsonl out
run evp-load m.jsonl --payloads nosuch --dry-run
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >contexts.jsonl
for split in train test; do
	printf '{"id":"%s","context":"a","split":"%s","text":"What is the name?"}\n' $split $split
done >q.jsonl
run evp-profile contexts.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs knorm:drop=0.5 --max-new-tokens 2 -o p.h5
run evp-score p.h5 --embedder "$DATA/minibert" --tiers tiers.json -o t.h5
run evp-plan t.h5 --tiers tiers.json -o n.jsonl
run evp-pack n.jsonl contexts.jsonl --model "$DATA/tiny.gguf" -o pay --dry-run
[ ! -e pay ] || echo "a dry run wrote payloads"
run evp-pack n.jsonl contexts.jsonl --model "$DATA/tiny.gguf" -o pay
run evp-drift t.h5 n.jsonl --contexts contexts.jsonl --questions q.jsonl --model "$DATA/tiny.gguf" -o moved.jsonl
evp-import -q c.jsonl --summary no/such/s.json >out
echo "status $?"
evp-import -q c.jsonl --summary /dev/full >out
echo "status $?"
evp-import --limit x --summary s.json c.jsonl 2>/dev/null
[ ! -e s.json ] || echo "a wrong command line has a summary"

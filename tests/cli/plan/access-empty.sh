# A log that counts no use of any context would evict everything: it is refused unless --access-empty says that it is meant.
cp "$DATA/table.h5" "$DATA/tiers.json" .
printf '{"evp":"access","version":1}\n{"end":true,"rows":0}\n' >none.jsonl
: >empty.jsonl
: | gzip >empty.gz
for id in c0 c1 x; do
	echo "{\"context\":\"$id\"}" >$id.jsonl
done
printf '{"context":"c0","count":0}\n{"context":"c1","count":1e-400}\n' >faded.jsonl
plan() {
	rm -f m.jsonl
	evp-plan -q table.h5 --tiers tiers.json -o m.jsonl "$@"
	echo "$?: $(sed -n 's/.*"id":"\([^"]*\)".*"tier":"\([^"]*\)".*/\1 \2/p' m.jsonl 2>/dev/null | paste -s -d , -) with $*"
}
plan --access c0.jsonl
mv m.jsonl before.jsonl
plan --access none.jsonl
plan --access none.jsonl --previous before.jsonl
plan --access empty.jsonl --access empty.gz --access faded.jsonl
plan --access faded.jsonl --online
plan --access x.jsonl --access-min-match 0
evp-plan table.h5 --tiers tiers.json --access none.jsonl --alpha 1,2 -o sweep
echo "$?: $(ls sweep)"
plan --access none.jsonl --access-before c0.jsonl
plan --access c1.jsonl --access-before c0.jsonl # of what came before nothing comes again
plan --access c0.jsonl --access empty.jsonl
plan --access c0.jsonl --access-before none.jsonl --access-test none.jsonl
plan --access none.jsonl --access-floor 0.1
plan --access none.jsonl --access-empty --previous before.jsonl
evp-plan -q table.h5 --verify m.jsonl --access none.jsonl --previous before.jsonl && echo verified
plan --access none.jsonl --access-empty --online
plan --access none.jsonl --access-empty --target-quality 0.9

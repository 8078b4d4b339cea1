# As many tiers as a manifest may have, all used; a second load has nothing to do, and a rollback empties them. One tier
# more is refused.
for i in $(seq 64); do
	echo "tier t$i file $PWD/t$i 60001"
	echo "context a$i 10 none t$i"
done >lines
{ grep ^tier lines; grep ^context lines; } | "$BUILD/tests/tools/make-load" m.jsonl pay
evp-load -q m.jsonl --payloads pay || exit
find t* -path '*/evp-payloads/*' -type f | wc -l
evp-load m.jsonl --payloads pay
sed "1s|\"tiers\":\[|&{\"name\":\"t65\",\"kind\":\"file\",\"uri\":\"$PWD/t65\",\"capacity_bytes\":1,\"read_bytes_per_s\":1,\"write_bytes_per_s\":1,\"latency_s\":0},|" m.jsonl >more.jsonl
evp-load more.jsonl --payloads pay
echo "status $?"
evp-load -q --rollback m.jsonl
find t* -path '*/evp-payloads/*' -type f | wc -l

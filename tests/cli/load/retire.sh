# A retired model gives its bytes to the others at once. Its namespace goes, with the placement that a rollback would need.
. "$TOP/tests/cli/load/plans.inc"
model=$(printf '0123456789abcdef%.0s' 1 2 3 4)
first_plan m
evp-load -q m.jsonl --payloads pay && evp-load -q m.jsonl --payloads pay --namespace tenant
echo "status $?"
evp-load -q m.jsonl --payloads pay --namespace tenant --chunks
space=$(sed -n 's/.*"model_digest":"\([0-9a-f]*\)".*/\1/p; q' m.jsonl)
evp-load -q m.jsonl --retire "$space" --dry-run | cut -f 1,2,5
evp-load m.jsonl --retire "$space" 2>said
echo "status $?"
sed '/steps/d; s/ in [0-9].*//' said
evp-load -q m.jsonl --payloads pay --namespace tenant
echo "status $?"
placed; payloads dram; payloads ssd
evp-show --json dram | grep -o '"namespace":"[a-z]*"' | sort | uniq -c
evp-load -q m.jsonl --rollback --payloads pay 2>&1 | sed 's/the previous.*//'
evp-load -q m.jsonl --retire nobody; echo "status $?"
evp-load -q m.jsonl --retire tenant --rollback; echo "status $?"
evp-show --check dram ssd

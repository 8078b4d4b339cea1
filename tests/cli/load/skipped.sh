# Contexts on tiers that evp-load does not serve are left out with a sentence and status 1; the others are placed.
. "$TOP/tests/cli/load/plans.inc"
{
	echo "tier dram dram $PWD/dram 60000"
	echo "tier cache redis redis://localhost 60000"
	echo "tier far lmcache lm://localhost 60000"
	printf 'context %s\n' 'a1 100 none dram' 'b1 100 none cache' 'c1 50 none cache'
} | "$BUILD/tests/tools/make-load" m.jsonl pay
for i in 1 2; do
	evp-load m.jsonl --payloads pay 2>said
	echo "status $?"
	grep -v -e loaded -e checked -e steps said
done
evp-show --check m.jsonl.receipt
evp-load -q --json m.jsonl
echo "status $?"

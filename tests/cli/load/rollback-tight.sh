# Full tiers keep no spares: a rollback takes payloads from the payload folder; without one it is refused and nothing
# changes.
. "$TOP/tests/cli/load/plans.inc"
echo 'a1 100 none dram
b1 100 none ssd' | plan m 25600 25600
evp-load -q m.jsonl --payloads pay || exit
placed >was
echo 'c1 100 none dram
d1 100 none ssd' | plan m 25600 25600
evp-load -q m.jsonl --payloads pay || exit
payloads dram; payloads ssd
state >loaded
evp-load -q --rollback m.jsonl
echo "status $?"
state | cmp loaded - || exit
evp-load -q --rollback m.jsonl --payloads pay || exit
placed | cmp was -

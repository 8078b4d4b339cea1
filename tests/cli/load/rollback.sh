# There and back: the tiers and the receipt are what they were, and a second step back is refused.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
placed | sort >was
cp m.jsonl first.jsonl
cp m.jsonl.receipt receipt
second_plan m
evp-load -q m.jsonl --payloads pay || exit
# without a payload folder: everything that a rollback needs stayed in the tiers
evp-load -q --rollback m.jsonl || exit
placed | sort | cmp was - || exit
cmp receipt m.jsonl.receipt || exit
ls dram ssd | grep -c safetensors
ls m.jsonl*
cp first.jsonl m.jsonl
evp-load m.jsonl --payloads pay || exit
evp-load -q --rollback m.jsonl

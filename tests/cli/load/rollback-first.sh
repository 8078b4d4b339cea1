# Back from the first load: nothing is placed, and there is no receipt.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
evp-load -q --rollback m.jsonl || exit
ls . dram ssd; payloads dram; payloads ssd

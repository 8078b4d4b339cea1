# The receipt is of another manifest than the one given.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
second_plan m
evp-load -q --rollback m.jsonl

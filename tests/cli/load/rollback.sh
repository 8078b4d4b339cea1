# There and back: the tiers are what they were, and a second step back is refused. A receipt tells of a load in force.
. "$TOP/tests/cli/load/plans.inc"
first_plan first
evp-load -q first.jsonl --payloads pay || exit
placed >was
second_plan second
evp-load -q second.jsonl --payloads pay || exit
evp-show --check first.jsonl.receipt >checked 2>&1; echo "status $?" # what was evicted is gone
evp-load -q --rollback second.jsonl --payloads pay || exit
placed | cmp was - || exit
payloads dram; payloads ssd
ls ./*.jsonl*
evp-load first.jsonl --payloads pay || exit
evp-load -q --rollback first.jsonl

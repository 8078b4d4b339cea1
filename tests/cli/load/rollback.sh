# There and back: the tiers are what they were, and a second step back is refused. A receipt tells of a load in force.
. "$TOP/tests/cli/load/plans.inc"
first_plan first
evp-load -q first.jsonl --payloads pay || exit
placed >was
second_plan second
evp-load -q second.jsonl --payloads pay || exit
evp-show --check first.jsonl.receipt | sed "s|.*/||"
# without a payload folder: everything that a rollback needs stayed in the tiers
evp-load -q --rollback second.jsonl || exit
placed | cmp was - || exit
payloads dram; payloads ssd
ls ./*.jsonl*
evp-show --check first.jsonl.receipt
evp-load first.jsonl --payloads pay || exit
evp-load -q --rollback first.jsonl

# From one plan to the next: what the receipt says, and what the summary counts.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
second_plan m
evp-load m.jsonl --payloads pay || exit
placed | sort
sed -n 's/^{"id":"\([^"]*\)".*"tier":"\([^"]*\)","operation":"\([^"]*\)"}/\1 \2 \3/p' m.jsonl.receipt

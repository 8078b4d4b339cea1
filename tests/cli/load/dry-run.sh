# The operations of a dry run, before the first load and between two plans; nothing changes.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q --dry-run m.jsonl --payloads pay || exit
ls
evp-load -q m.jsonl --payloads pay || exit
second_plan m
state >was
echo
evp-load -q --dry-run m.jsonl --payloads pay || exit
state | cmp was -

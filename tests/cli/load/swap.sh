# Two full tiers exchange their payloads, and the payload folder has neither: one of the two is staged there.
. "$TOP/tests/cli/load/plans.inc"
echo 'a1 100 none dram
b1 100 none ssd' | plan m 25600 25600
evp-load -q m.jsonl --payloads pay || exit
echo 'a1 100 none ssd
b1 100 none dram' | plan m 25600 25600
rm pay/*
evp-load -q m.jsonl --payloads pay || exit
placed
ls pay | wc -l

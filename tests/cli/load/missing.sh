# Missing payloads are named, the first ten of them, and counted; the others are placed. A payload folder that is not
# there is told as such.
. "$TOP/tests/cli/load/plans.inc"
seq 12 | sed 's/.*/a& & none dram/' | plan m 100000 100000
rm pay/a3-* pay/a5-*
evp-load -q m.jsonl --payloads pay
echo "status $?"
rm pay/*
evp-load -q m.jsonl --payloads pay
echo "status $?"
evp-load -q m.jsonl --payloads nosuch
echo "status $?"
evp-load -q m.jsonl
echo "status $?"

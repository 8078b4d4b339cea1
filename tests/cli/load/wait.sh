# Another load is at work: refused at once, or waited for.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
mkdir -m 700 dram
flock dram/evp-lock evp-load -q m.jsonl --payloads pay 2>said
echo "status $?"
sed "s|$PWD/||" said
flock dram/evp-lock sleep 0.3 &
while flock -n dram/evp-lock true; do :; done
evp-load -q m.jsonl --payloads pay --wait 60 && placed

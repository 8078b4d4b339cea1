# A tier that leaves the manifest keeps its payloads, and the load says so once, from the receipt of the load before.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
printf 'tier dram dram %s 60000\ncontext a1 100 none dram\n' "$PWD/dram" | "$BUILD/tests/tools/make-load" m.jsonl pay
for i in 1 2; do evp-load -q m.jsonl --payloads pay 2>&1 | sed "s|$PWD/||"; done
rows ssd | wc -l
first_plan m
evp-load -q m.jsonl --payloads pay
placed

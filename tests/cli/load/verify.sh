# A bit rots in a tier: --verify finds it and places the payload again; what is missing is found without.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
rotten=$(file dram a1 none)
printf 'x' | dd of="$rotten" bs=1 seek=9000 conv=notrunc 2>dd.log
evp-load m.jsonl --payloads pay || exit
evp-show --check dram
evp-load -q --dry-run --verify m.jsonl --payloads pay
echo "status $?"
evp-load -q --verify m.jsonl --payloads pay || exit
cmp "$rotten" pay/a1-none* || exit
rm "$(file ssd b1 kivi:bits=2)"
evp-load -q m.jsonl --payloads pay || exit
evp-load --verify m.jsonl --payloads pay
evp-show --check dram ssd

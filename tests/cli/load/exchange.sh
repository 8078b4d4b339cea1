# Two full tiers exchange all of their payloads, with and without a payload folder, which stays as it is.
. "$TOP/tests/cli/load/plans.inc"
contexts() { seq 300 | sed "s/.*/a& 4 none $1/; n; s/.*/a& 4 none $2/"; }
bytes=$((150 * 4 * 256))
contexts dram ssd | plan one $bytes $bytes
contexts ssd dram | plan two $bytes $bytes
cp -r pay kept
evp-load -q one.jsonl --payloads pay || exit
rm pay/*
evp-load two.jsonl 2>said || exit
grep -c rollback said # only those that tell of spares: every payload is in the other tier
placed | sort -k 2 >two
evp-show --check dram ssd
for name in kept/*; do echo newer >"pay/${name#kept/}"; done
evp-load -q --rollback two.jsonl --payloads pay || exit
placed | sort -k 2 | diff - two | grep -c '^<'
sort -u pay/*
evp-load -q two.jsonl --payloads kept || exit
placed | sort -k 2 | cmp two -

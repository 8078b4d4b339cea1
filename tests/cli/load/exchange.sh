# Two full tiers exchange all of their payloads, without a payload folder and back; every context is found all the time.
. "$TOP/tests/cli/load/plans.inc"
contexts() { seq 300 | sed "s/.*/a& 4 none $1/; n; s/.*/a& 4 none $2/"; }
bytes=$((150 * 4 * 256))
contexts dram ssd | plan one $bytes $bytes
contexts ssd dram | plan two $bytes $bytes
evp-load -q one.jsonl --payloads pay || exit
rm pay/*
placed | sort -k 2 >one
evp-load -q two.jsonl || exit
placed | sort -k 2 >two
evp-show --check dram ssd
diff one two | grep -c '^<'
evp-load -q --rollback two.jsonl || exit
placed | sort -k 2 | cmp one -
evp-load -q two.jsonl && placed | sort -k 2 | cmp two -

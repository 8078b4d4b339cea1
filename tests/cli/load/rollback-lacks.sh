# A rollback without all of its payloads returns to what it can, names the rest, and drops nothing else whose bytes it does
# not need. Payloads that were packed again with the same size serve it, damaged ones do not.
. "$TOP/tests/cli/load/plans.inc"
echo 'a1 100 none dram
b1 100 none ssd' | plan m 25600 51200
evp-load -q m.jsonl --payloads pay || exit
placed >was
echo 'a1 100 none ssd
c1 100 none dram
d1 100 none recompute' | plan n 25600 51200
evp-load -q n.jsonl --payloads pay || exit
evp-load -q --rollback n.jsonl
echo "status $?"
placed
evp-load -q --rollback n.jsonl
echo "status $?"
evp-load -q m.jsonl --payloads pay && placed | cmp was - && evp-load -q n.jsonl --payloads pay || exit
cp -r pay whole
printf 'x' | dd of="$(echo pay/b1-*)" bs=1 seek=9000 conv=notrunc 2>dd.log
evp-load -q --rollback n.jsonl --payloads pay
echo "status $?"
evp-load -q m.jsonl --payloads whole || exit
placed | cmp was -

# Payloads that were packed again since the load, with the same sizes: it promised nothing about them, and the rollback is
# refused before it changes anything.
. "$TOP/tests/cli/load/plans.inc"
echo 'a1 100 none dram
b1 100 none ssd' | plan m 25600 25600
evp-load -q m.jsonl --payloads pay || exit
placed >was
echo 'c1 100 none dram
d1 100 none ssd' | plan m 25600 25600
evp-load m.jsonl --payloads pay 2>&1 | grep 'a rollback needs'
state >loaded
cp -r pay whole
for payload in pay/a1-* pay/b1-*; do printf 'x' | dd of="$payload" bs=1 seek=9000 conv=notrunc 2>dd.log; done
evp-load -q --rollback m.jsonl --payloads pay
echo "status $?"
state | cmp loaded - || exit
evp-load -q --rollback m.jsonl --payloads whole || exit
placed | cmp was -

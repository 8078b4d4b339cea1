# A spare is damaged: a rollback reads it first, and takes the payload from the payload folder instead.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
placed >was
second_plan m
evp-load -q m.jsonl --payloads pay || exit
printf 'x' | dd of="$(file ssd c1 none)" bs=1 seek=9000 conv=notrunc 2>dd.log
evp-load -q --rollback m.jsonl
echo "status $?"
evp-load -q --rollback m.jsonl --payloads pay || exit
placed | cmp was -
cmp "$(file ssd c1 none)" pay/c1-*

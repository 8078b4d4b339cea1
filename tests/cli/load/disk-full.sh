# A full disk is reported before anything changes. After a limit that shows only while writing, the state before returns.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
second_plan m
placed | sort >was
cp m.jsonl.receipt receipt
trap '' XFSZ
(ulimit -f 8 && evp-load -q m.jsonl --payloads pay)
echo "status $?"
placed | sort | cmp was - && cmp receipt m.jsonl.receipt || exit
mkdir small
mount -t tmpfs -o size=64k tmpfs small 2>mount.log || skip "cannot mount a small disk: $(cat mount.log)"
{
	printf 'tier small file %s -\n' "$PWD/small/tier"
	printf 'context a1 100 none small\ncontext b1 200 none small\n'
} | "$BUILD/tests/tools/make-load" small.jsonl pay
evp-load -q small.jsonl --payloads pay
echo "status $?"
ls small/tier
umount small

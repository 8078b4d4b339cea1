# A disk that is too full for a context leaves that context out, whether it is known before or shows while writing; the
# others are placed, what was there stays, and the next load makes up for it.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
{
	printf 'a1 100 none dram\nb1 200 kivi:bits=2 ssd\nbig 2000 none ssd\nlast 30 none ssd\n'
} | plan large 60000 1000000
trap '' XFSZ
(ulimit -f 400 && evp-load -q large.jsonl --payloads pay) 2>said
echo "status $?"
sed "s|evp-payloads/[0-9a-f/]*|FILE|" said
placed
evp-show --check dram ssd
evp-load -q large.jsonl --payloads pay && placed
(ulimit -f 400 && evp-load -q m.jsonl --payloads pay) && evp-show --check dram ssd
mkdir small
mount -t tmpfs -o size=400k tmpfs small 2>mount.log || skip "cannot mount a small disk: $(cat mount.log)"
{
	printf 'tier small file %s -\n' "$PWD/small/tier"
	printf 'context a1 10 none small\ncontext b1 200 none small\n'
} | "$BUILD/tests/tools/make-load" small.jsonl pay
evp-load -q small.jsonl --payloads pay 2>said
echo "status $?"
sed "s|$PWD/||; s/has [0-9]* free/has N free/" said
evp-show --json small/tier | grep -o '"context":"[^"]*"'
umount small

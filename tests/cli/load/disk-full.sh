# A full disk is reported before anything changes. After a limit that shows only while writing, the state before returns.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
echo 'big 2000 none ssd' | plan large 60000 1000000
placed >was
trap '' XFSZ
(ulimit -f 400 && evp-load -q large.jsonl --payloads pay) 2>said
echo "status $?"
sed "s|evp-payloads/[0-9a-f/]*|FILE|" said
placed | cmp was - || exit
evp-load m.jsonl --payloads pay
evp-show --check dram ssd
# a rollback that meets such a limit says that it is not complete, and goes on when it is run again
evp-load -q large.jsonl --payloads pay && evp-load -q m.jsonl --payloads pay || exit
(ulimit -f 400 && evp-load -q m.jsonl --payloads pay --rollback) 2>said
echo "status $?"
sed "s|evp-payloads/[0-9a-f/]*|FILE|" said
evp-load -q m.jsonl --payloads pay --rollback && placed
mkdir small
mount -t tmpfs -o size=320k tmpfs small 2>mount.log || skip "cannot mount a small disk: $(cat mount.log)"
{
	printf 'tier small file %s -\n' "$PWD/small/tier"
	printf 'context a1 100 none small\ncontext b1 200 none small\n'
} | "$BUILD/tests/tools/make-load" small.jsonl pay
evp-load -q small.jsonl --payloads pay 2>said
echo "status $?"
sed "s|$PWD/||; s/has [0-9]* free/has N free/" said
ls small/tier
umount small

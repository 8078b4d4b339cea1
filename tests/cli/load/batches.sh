# So many payloads that they are placed in batches, each named while the next one is copied: a load that is killed among
# them is continued, and an object that payloads of several batches have is written once.
. "$TOP/tests/cli/load/plans.inc"
seq 1000 1010 >ids
contexts() { seq "$2" | awk -v name="$1" '{ print "context", name $1, 4 + $1 % 3, "none", $1 % 2 ? "dram" : "ssd" }'; }
{
	echo "tier dram dram $PWD/dram -"
	echo "tier ssd file $PWD/ssd -"
	echo "ids own - - -"
	contexts a 4400
	echo "ids ids - - -"
	contexts b 4600
} | "$BUILD/tests/tools/make-load" m.jsonl pay
look() {
	for tier in dram ssd; do
		echo "$tier: $(payloads $tier) files for $(rows $tier | wc -l) payloads, $(evp-show --check $tier)"
	done
}
case $BUILD in
*asan | *tsan) : >flushes ;; # a sanitizer must be the first library: looked at without one
*) LD_PRELOAD=$BUILD/tests/plugins/flushes.so ;;
esac
export LD_PRELOAD FLUSHES="$PWD/flushes"
evp-load -q m.jsonl --payloads pay || exit
unset LD_PRELOAD
look
grep -c '^unlink .*evp-payloads' flushes # nothing is written again
for kill in 0.05 0.2; do
	rm -r dram ssd
	timeout -s KILL $kill evp-load -q m.jsonl --payloads pay >killed 2>&1
	evp-show --check dram ssd >checked 2>&1
	evp-load -q --wait 60 m.jsonl --payloads pay && look
done | sort | uniq -c

# Whatever the service does first, what comes out in the end is what a well-behaved one gives.
. "$TOP/tests/cli/qgen/mock"
ask ok | rows >want || exit 9
all="wrapped busy busy-date broken-twice slow-once garbage-once half-once half-chunked-once dropped-once plain-only"
runs=
for s in $all; do
	ask $s --timeout 0.4 >$s &
	runs="$runs $!"
done
wait $runs
for s in $all; do
	rows $s | cmp - want || echo "$s differs"
	echo "$s: $(grep "^/$s/" "$log" | cut -d' ' -f2,5 | sort | uniq -c | sed 's/^ *//' | tr '\n' ';')"
done

# Whatever the service does first, what comes out in the end is what a well-behaved one gives.
. "$TOP/tests/cli/qgen/mock"
ask ok | rows >want || exit 9
all="wrapped busy busy-date broken-twice garbage-once half-once half-chunked-once dropped-once"
runs=
for s in $all; do
	ask $s >$s &
	runs="$runs $!"
done
timeout=0.4 ask slow-once >slow-once &
runs="$runs $!"
wait $runs
for s in $all; do
	rows $s | cmp - want || echo "$s differs"
	echo "$s: $(grep "^/$s/" "$log" | cut -d' ' -f2 | sort | uniq -c | sed 's/^ *//' | tr '\n' ';')"
done
# A loaded machine may need more than one try.
rows slow-once | cmp - want || echo "slow-once differs"
[ "$(grep -c '^/slow-once/' "$log")" -ge 8 ] || echo "nobody was too slow"

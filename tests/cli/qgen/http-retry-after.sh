# Retry-After is waited for, a number of seconds or a date; without it the first wait is at most half a second.
. "$TOP/tests/cli/qgen/mock"
spent() {
	start=$(date +%s%N)
	ask $1 >/dev/null
	echo "$1 $((($(date +%s%N) - start) / 1000000))" >$1.ms
}
spent busy &
runs=$!
spent busy-date &
wait $runs $!
cat busy.ms busy-date.ms | while read -r name ms; do
	[ "$ms" -ge 900 ] || echo "$name came back after $ms ms"
done

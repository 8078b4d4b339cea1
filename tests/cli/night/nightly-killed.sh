# evp-nightly, killed at any moment, again and again: the same command goes on with the night where it was, and finishes it. Some
# nights are never finished: the next one is as good. The third kill waits for a step that is done, however slow the machine is.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
nights 1
killed=0 resumed=0
while [ $last -lt 5 ] || { [ $killed -lt 3 ] && [ $last -lt 20 ]; }; do
	begin_night
	touch begun
	for try in 1 2 3; do
		evp-nightly -v --config nightly.json >"kill-$try.log" 2>&1 &
		sleep "$(printf 0.%03d "$(shuf -i 10-700 -n 1)")"
		while [ $try = 3 ] && kill -0 $! 2>kill.log && [ -z "$(find world/nights -name night.json -newer begun)" ]; do
			sleep 0.01
		done
		kill -KILL $! 2>kill.log && killed=$((killed + 1))
		{ wait $!; } >wait.log 2>&1
	done
	[ $((last % 4)) != 0 ] || continue
	run_night || { echo "status $?" && tail -n 1 night.log; }
	! grep -q 'goes on where it was' kill-?.log night.log || resumed=$((resumed + 1))
	found && evp-show --check $checked | grep -v ': ok$'
done
[ $killed -ge 3 ] || echo "only $killed were killed"
[ $resumed -ge 1 ] || echo "none went on"

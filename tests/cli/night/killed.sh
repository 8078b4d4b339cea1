# The steps of a night as a script, contrib/nightly/nightly.sh, killed within evp-pack or evp-load at any moment, again and again: started once more, it
# finishes the night.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
by_script
for tool in evp-pack evp-load; do
	mkdir -p "killers/$tool"
	cat >"killers/$tool/$tool" <<-'END'
		#!/bin/sh
		"$BUILD/${0##*/}" "$@" &
		sleep "$(printf 0.%03d "$(shuf -i 1-40 -n 1)")"
		kill -KILL $!
		wait $!
	END
	chmod +x "killers/$tool/$tool"
done
nights 1
n=0
while [ $last -lt 6 ] || { [ $n = 0 ] && [ $last -lt 40 ]; }; do
	begin_night
	for tool in evp-pack evp-load evp-load evp-load; do
		(PATH=$PWD/killers/$tool:$PATH && run_night) || n=$((n + 1))
	done
	run_night || { echo "status $?" && tail -n 1 night.log; }
	found && evp-show --check $checked | grep -v ': ok$'
done
[ $n -gt 0 ] || echo "none was killed"

# The script for every night of README.md, killed within evp-pack or evp-load at any moment, again and again: started once more, it
# finishes the night.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
mkdir killers
for tool in evp-pack evp-load; do
	cat >killers/$tool <<-'END'
		#!/bin/sh
		"$BUILD/${0##*/}" "$@" &
		sleep "$(printf 0.%03d "$(shuf -i 1-30 -n 1)")"
		kill -KILL $!
		wait $!
	END
done
chmod +x killers/*
nights 1
n=0
while [ $last -lt 6 ]; do
	begin_night
	for again in 1 2 3 4; do
		(PATH=$PWD/killers:$PATH && run_script) || n=$((n + 1))
	done
	run_script || { echo "status $?" && tail -n 1 night.log; }
	found && evp-show --check $checked | grep -v ': ok$'
done
[ $n -gt 3 ] || echo "only $n of 20 were killed"

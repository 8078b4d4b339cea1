# Engines tell one live plan of uses: who owns it, what is stored and by whom, after kills too.
. "$TOP/tests/cli/load/python.inc"
{
	echo "tier dram dram $PWD/dram 400000"
	echo "tier ssd file $PWD/ssd 400000"
	echo 'variants none kivi:bits=4 - -'
	echo 'context a1 300 none dram'
	echo 'context b1 200 kivi:bits=4 ssd'
	echo 'context d1 180 none recompute'
} | "$BUILD/tests/tools/make-load" m.jsonl pay
evp-load -q m.jsonl --payloads pay || exit
"$python" "$TOP/tests/cli/load/day_use.py" "$PWD"
# How fast uses come decides whether the second text has been evicted (day/b7500).
evp-show --json dram ssd | grep -o '"context":"[^"]*"' | cut -c 1-20 | grep -v b7500 | sort

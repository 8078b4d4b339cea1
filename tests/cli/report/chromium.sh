# A browser shows the page: its text, its plots, and something on the screen. Some of it is seen without colour.
command -v chromium >/dev/null || skip "chromium is not installed; scripts/setup nightly installs it"
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 30 10
evp-tiers -q --tier name=dram,uri=redis://a:1,capacity=100M,read=5G,write=5G,latency=0.0001 -o tiers.json
evp-plan -q table.h5 --tiers tiers.json -o m.jsonl
evp-report -q table.h5 m.jsonl -o page.html
browser() {
	HOME=$PWD timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/user" --window-size=1000,1400 \
		"$@" "file://$PWD/page.html" 2>log
}
browser --dump-dom >dom
grep -c '<svg' dom
for text in 'EvicPress report' 'What the tiers hold' 'Quality against size' 'as promised' 'this plan' 'context/7'; do
	grep -q "$text" dom || echo "the browser does not show '$text'"
done
browser --screenshot="$PWD/page.png" >/dev/null
python3 "$TOP/tests/cli/report/png.py" page.png

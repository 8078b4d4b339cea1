# Small tables: one context, one config, no held-out answers, no qualities at all; a plan that stores nothing.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
export PYTHONPATH="$TOP/tests/cli/report"
say() { /usr/bin/python3 -B -c 'from page import page; p = page("page.html"); print(p.h1, p.lede, *p.headings, sep="\n  ")'; }
report() {
	echo "- $*"
	evp-tiers -q --tier name=dram,uri=redis://a:1,capacity=$size,read=5G,write=5G,latency=0.0001 -o tiers.json
	evp-plan -q table.h5 --tiers tiers.json --alpha 1 -o m.jsonl
	evp-report -q table.h5 m.jsonl -o page.html
	say
}
edit() { /usr/bin/python3 -c 'import h5py, numpy as np, sys; f = h5py.File("table.h5", "r+"); exec(sys.argv[1])' "$1"; }
size=10M
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 1 1
report one context, one config
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 3 4
size=1K
report no room
size=10M
edit 'f["/quality/test"][:] = np.nan'
report no held-out answers
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 3 4
edit 'f["/quality/test"][:2] = np.nan'
size=40M
report held-out answers of some contexts
for part in answers/similarity quality; do edit "del f['$part']"; done
evp-report -q table.h5 -o page.html
say

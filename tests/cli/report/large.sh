# Ten thousand contexts: below 2 MB, and every one has its line; the most used have details.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 10000 12
evp-tiers -q --tier name=dram,uri=redis://a:1,capacity=30G,read=5G,write=5G,latency=0.0001 \
	--tier name=ssd,uri=redis://b:1,capacity=50G,read=1G,write=1G,latency=0.001 -o tiers.json
evp-plan -q table.h5 --tiers tiers.json -o m.jsonl
evp-report -q table.h5 m.jsonl -o page.html
n=$(wc -c <page.html)
[ "$n" -lt 2000000 ] || echo "$n bytes"
grep -c '^<tr><td>context/' page.html
grep -c '<details>' page.html

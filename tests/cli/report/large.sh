# A thousand and ten thousand contexts: each has its line, the most used have their reasons, and the page stays below 2 MB.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
evp-tiers -q --tier name=dram,uri=redis://a:1,capacity=3G,read=5G,write=5G,latency=0.0001 \
	--tier name=ssd,uri=redis://b:1,capacity=5G,read=1G,write=1G,latency=0.001 -o tiers.json
for n in 1000 10000; do
	/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 $n 12
	evp-plan -q table.h5 --tiers tiers.json -o m.jsonl
	evp-report -q table.h5 m.jsonl -o page.html
	PYTHONPATH=$TOP/tests/cli/report python3 -B - <<'END'
from page import page
p = page("page.html")
assert len(p.bytes) < 2000000, len(p.bytes)
reasons = [d for d in p.root.iter("details") if d.find("summary/span") is not None]
rows = len(p.table("Contexts")[1])
left_out = [int(t.text.split()[0]) for t in p.root.iter("p") if "left out" in (t.text or "")]
assert rows >= 7000 or not left_out
print(rows + sum(left_out), "contexts,", len(left_out), "note that some are left out,", len(reasons), "reasons")
END
done

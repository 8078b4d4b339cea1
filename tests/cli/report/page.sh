# A report of a table, a manifest and a receipt: all parts, one file, the same bytes again, no script and no link.
command -v gnuplot >/dev/null || skip "gnuplot is not installed"
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 30 10
evp-tiers -q --tier name=dram,uri=redis://a:1,capacity=100M,read=5G,write=5G,latency=0.0001 \
	--tier name=ssd,uri=redis://b:1,capacity=150M,read=1G,write=1G,latency=0.001 -o tiers.json
for i in $(seq 0 29); do echo "{\"context\":\"context/$i\",\"count\":$((40 - i))}"; done >access.jsonl
evp-plan -q table.h5 --tiers tiers.json --access access.jsonl -o m.jsonl
evp-report table.h5 m.jsonl -o one.html
evp-report m.jsonl table.h5 >two.html
cmp one.html two.html
python3 - <<'END'
import re
page = open("one.html").read()
print(len(re.findall("<svg", page)), "plots", len(re.findall("<details>", page)), "details",
      len(re.findall("<tr><td>context/", page)), "rows", len(page) < 2000000)
print(re.findall("<(?:h1|h2|figcaption)>(.*?)</", page))
assert not re.search(r"<script|<link|<iframe|<object|\bon\w+=|(?:src|href)\s*=\s*[\"'](?!#)|url\((?!['\"]?#)|@import", page)
row = re.search(r"<tr><td>context/0<td>(\d+)<td>(\d+)<td>(\w+)<td>([^<]*)<td>", page).groups()
print(row[1:])
assert page.count("<b>chosen</b>") == page.count("<details>")
END

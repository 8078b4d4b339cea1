# Names, questions, answers and lineage that look like markup, or like commands of the shell, are text.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 4 6 hostile
evp-tiers -q --tier name=dram,uri=redis://a:1,capacity=20M,read=5G,write=5G,latency=0.0001 -o tiers.json
evp-plan -q table.h5 --tiers tiers.json --alpha 0.1,1 -o sweep
evp-report -q table.h5 sweep/manifest-1.jsonl sweep/frontier.tsv -o page.html
PYTHONPATH=$TOP/tests/cli/report python3 -B - <<'END'
from page import page
p = page("page.html")
assert "<script>alert(1)</script>" in "".join(p.root.itertext()) and b"<script" not in p.bytes
print(p.h1.split()[0], len(p.table("Contexts")[1]), "contexts")
END
evp-report -q table.h5 sweep/manifest-1.jsonl sweep/frontier.tsv --svg -o gain.svg
python3 -c 'import xml.etree.ElementTree as E; print(E.parse("gain.svg").getroot().tag)'
# A frontier's columns are names of tiers; its numbers may be huge, unknown or below 0.
printf 'alpha\tquality\tquality_test\tttft_s\thits_<b>&"\thits_recompute\n1e300\t1e308\t-1e308\t1e-300\t0\t7\n-1\tnan\t-\tnan\t0\t0\n' >odd.tsv
evp-report -q odd.tsv -o odd.html
PYTHONPATH=$TOP/tests/cli/report python3 -B -c 'from page import page; print(page("odd.html").table("Other alphas")[1])'
ls

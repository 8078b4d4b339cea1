# Any of the files alone, a profile without scores, and what is refused.
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" -o m.jsonl
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --alpha 0,1 -o sweep
# A plan without a comparison, and one whose comparison lacks qualities.
sed 's/,"totals":\[[^]]*\]//' m.jsonl >bare.jsonl
sed 's/"quality":[^,]*,"quality_error":[^,]*,"quality_test":[^,]*,//' m.jsonl >blank.jsonl
for files in bare.jsonl blank.jsonl "$DATA/table.h5" m.jsonl "m.jsonl $DATA/table.h5" sweep/frontier.tsv "sweep/frontier.tsv sweep/manifest-1.jsonl"; do
	evp-report -q $files -o page.html
	PYTHONPATH=$TOP/tests/cli/report python3 -B -c 'from page import page; p = page("page.html"); print(p.h1, p.lede, *p.headings.values(), sep="\n  ")'
done
try() { evp-report "$@" 2>&1 >/dev/null; echo "status $?"; }
try m.jsonl m.jsonl m.jsonl
try sweep/frontier.tsv sweep/frontier.tsv
try "$DATA/tiers.json" | sed "s|$DATA/||"
try nowhere
head -c 300 m.jsonl >cut
try cut | sed "s|at byte .*|at byte N|"
try m.jsonl -o nowhere/page.html
try "$DATA/table.h5" --svg -o gain.svg
try --svg sweep/frontier.tsv -o gain.svg
python3 -c 'import xml.etree.ElementTree as E; print(len(E.parse("gain.svg").getroot()) > 10)'

# Any of the files alone, a profile without scores, and what is refused.
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" -o m.jsonl
for files in "$DATA/table.h5" m.jsonl "m.jsonl $DATA/table.h5"; do
	evp-report -q $files -o page.html
	grep -o '<h2>[^<]*' page.html
	echo
done
try() { evp-report "$@" 2>&1 >/dev/null; echo "status $?"; }
try m.jsonl m.jsonl
try "$DATA/tiers.json" | sed "s|$DATA/||"
try nowhere
head -c 300 m.jsonl >cut
try cut | sed "s|at byte .*|at byte N|"
try m.jsonl -o nowhere/page.html

# Without gnuplot the page has tables alone, and both the tool and the page say so.
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" -o m.jsonl
PATH=$BUILD evp-report "$DATA/table.h5" m.jsonl -o page.html
grep -c '<svg' page.html
grep -o 'No plots.*' page.html
grep -o '<h2>[^<]*' page.html
# A gnuplot that fails is no missing one.
mkdir bin
printf '#!/bin/sh\nexit 3\n' >bin/gnuplot
chmod +x bin/gnuplot
PATH=$PWD/bin:$PATH evp-report m.jsonl 2>&1
echo "status $?"

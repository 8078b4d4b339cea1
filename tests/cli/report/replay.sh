# A page of what evp-replay wrote: figures and a table, well-formed, alone and beside a plan; tables that are wrong.
command -v python3 >/dev/null || skip "python3 is not installed"
replay() { evp-replay -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace poisson:1,400 --contexts zipf:1 "$@"; }
replay --policy prefill,lru,lfu,gdsf,s3fifo,sieve,belady,night --rate 0.05,0.1 --alpha 1,10 -o r.tsv
evp-report r.tsv -o r.html 2>&1
page() { python3 -c 'import sys, xml.dom.minidom as m
page = open(sys.argv[1]).read()
d = m.parseString(page[page.index("<html"):])
texts = lambda name: ["".join(t.data for t in e.childNodes if t.nodeType == 3) for e in d.getElementsByTagName(name)]
print(*texts("h1"), *texts("h2"), *texts("figcaption"), sep="\n")
print(len(d.getElementsByTagName("tr")), "rows")' "$1"; }
page r.html
grep -c 'Further policies are in the table' r.html
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" -o m.jsonl
replay --policy night --rate 0 -o one.tsv
evp-report m.jsonl one.tsv -o both.html 2>&1 && page both.html | grep -c 'What users would have seen'
grep -o 'One request after the other: nobody waits' both.html
evp-show one.tsv | tail -2 | cut -c1-20
bad() { evp-report "$1" -o bad.html; echo "status $?"; }
{ head -1 r.tsv && head -c 20 r.tsv; } >cut.tsv && bad cut.tsv 2>&1
sed '2s/\t/\tx/' r.tsv >word.tsv && bad word.tsv 2>&1
cut -f1-9 r.tsv >less.tsv && bad less.tsv 2>&1
evp-report r.tsv one.tsv 2>&1
exit 0

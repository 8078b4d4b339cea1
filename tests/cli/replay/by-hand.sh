# Three contexts of tests/data/table.h5 (100, 200, 400 kB; prefill 1, 2, 4 s; question .01 s), DRAM of 150 kB at 1 GB/s,
# SSD of 300 kB at 100 MB/s. By hand:
#   c0 at 0:   computed to 1.01, then in DRAM
#   c1 at 0.5: waits for the GPU, 1.01 to 3.02; 200 kB are more than DRAM, so it goes to the SSD
#   c0 at 5:   DRAM, 1 ms and 0.1 ms to read, question: 0.0111 s
#   c2 at 6:   computed to 10.01; fits nowhere
#   c1 at 20:  SSD, 10 ms and 2 ms to read, question: 0.022 s
#   c0 at 30:  as before
cat >access.jsonl <<-END
	{"context":"c1","at":100.5}
	{"context":"c0","at":100}
	{"context":"c0","at":105}
	{"context":"c2","at":106}
	{"context":"c1","at":120}
	{"context":"c0","at":130}
END
columns() { cut -f1-8,10,14-17,21- "$1" | sed "s|$DATA/||"; }
evp-replay "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace access.jsonl --policy lru,prefill --warm 0 -q -o r.tsv
echo "status $?"
columns r.tsv
echo "one after the other, compressed; the second half counts:"
evp-replay -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace access.jsonl --policy lru+kivi:bits=2,night --rate 0 --alpha 1,10 >r.tsv
echo "status $?"
columns r.tsv
echo "drawn, twice the same, other seeds and numbers of requests not:"
draw() { evp-replay -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace poisson:0.1,2000 --contexts zipf:1 --policy lfu,evicpress,adaptcache,live,belady,static-clairvoyant "$@" | cksum; }
a=$(draw) && b=$(draw) && c=$(draw --seed 2) && d=$(draw --rate 0.2)
[ "$a" = "$b" ] && [ "$a" != "$c" ] && [ "$a" != "$d" ] && echo yes
echo "a manifest, asked as often as it was planned for, is what its summary says:"
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" -o m.jsonl
printf '{"context":"c%d"}\n' 0 1 2 0 1 2 >even.jsonl
evp-replay -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace even.jsonl --policy manifest=m.jsonl --rate 0 | cut -f5,22 | tail -1 |
	awk '{ print $1 == $2 ? "equal" : $0 }'
echo "a plan that follows the requests begins with what a manifest stores:"
for policy in live live=m.jsonl; do
	evp-replay -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace even.jsonl --policy $policy --rate 0 --warm 0 --per-request q.tsv -o r.tsv
	echo "$policy: first in $(sed -n 2p q.tsv | cut -f 8,9)"
done
echo "by requests; what a thread more or less does not change:"
evp-replay "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace access.jsonl --policy lru --warm 0.5 -q --per-request q.tsv -o r.tsv
cat q.tsv
all() { "$@" evp-replay -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace poisson:0.1,2000 --contexts zipf:1 --alpha 1,3 --rate 0.1,0.2 --policy lfu,night,evicpress,live,belady,static-clairvoyant | cksum; }
echo "priorities, whole and compressed:"
printf '{"context":"c%d","count":%d}\n' 0 1 1 9 2 3 >priority.jsonl
evp-replay "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace access.jsonl --policy priority:priority.jsonl,priority:priority.jsonl+kivi:bits=2 --rate 0 --warm 0 -q --per-request q.tsv -o r.tsv
cut -f1,4,6-9 q.tsv
echo "120 kB for 20, 40 and 80: what takes up to 1.5 s to compute leaves before what was used longer ago:"
sed 's/"capacity_bytes":[0-9]*/"capacity_bytes":120000/g' "$DATA/tiers.json" | python3 -c 'import json, sys; t = json.load(sys.stdin); t["tiers"] = t["tiers"][:1]; print(json.dumps(t))' >one.json
printf '{"context":"c%d"}\n' 1 0 2 1 >tail.jsonl
evp-replay "$DATA/table.h5" --tiers one.json --trace tail.jsonl --policy lru+kivi:bits=2,tlru:1.5+kivi:bits=2,tlru:1+kivi:bits=2 --rate 0 --warm 0 -q --per-request q.tsv -o r.tsv
cut -f1,4,6-8 q.tsv | tail -n +2
echo "engines keep 250 kB themselves: c0, then c1 in its place; what was loaded in two bits stays so, and what was dropped is not kept:"
printf '{"context":"c%d"}\n' 0 0 1 0 0 >kept.jsonl
evp-replay "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace kept.jsonl --engine-cache 250000 --policy prefill,lru+kivi:bits=2,lru+keydiff:drop=0.5 --rate 0 --warm 0 -q --per-request q.tsv -o r.tsv
cut -f1,4,6-11 q.tsv | tail -n +2
awk -F'\t' '{ print $1, $14, $15, $16, $17, $NF }' r.tsv
echo "threads:"
[ "$(all)" = "$(all taskset -c 0)" ] && echo equal
echo "libCacheSim's records, c0 c1 c2 c0 for objects 7, 8, 9, 10:"
record() { printf "\\$1\\0\\0\\0\\$2\\0\\0\\0\\0\\0\\0\\0\\1\\0\\0\\0\\377\\377\\377\\377\\377\\377\\377\\377"; }
{ record 0 7 && record 1 10 && record 2 11 && record 3 12; } >some.oracleGeneral
evp-replay -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace some.oracleGeneral --contexts map --policy prefill --warm 0 --per-request q.tsv -o r.tsv
cut -f4-6 q.tsv
echo "more requests wait longer, with every policy:"
evp-replay "$DATA/table.h5" --tiers "$DATA/tiers.json" --trace poisson:1,20000 --contexts zipf:1 --policy prefill,lru,night --rate 0.05,0.1,0.2,0.3 -q |
	awk -F'\t' 'NR > 1 { if ($5 <= last[$1]) print "not", $0; last[$1] = $5; n++ } END { print n }'

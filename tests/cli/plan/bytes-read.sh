# keydiff keeps all of a cache here and reads a tenth of it: its TTFT is that of a tenth, and it fills a tier with all. The
# tier has 100 kB/s, 10 ms, and room for 500 kB; by hand:
#   c2  400 kB  4.01 s to recompute, 4.02 s to load all of it, 0.42 s to load what is read
#   c1  200 kB  2.01 s               2.02 s                    0.22 s    does not fit beside c2
#   c0  100 kB  1.01 s               1.02 s                    0.12 s
. "$TOP/tests/cli/plan/edit.inc"
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "no h5py"
/usr/bin/python3 "$TOP/tests/data/table.py" table.h5 3 full
change() {
	/usr/bin/python3 - "$1" <<-PY
		import sys, h5py
		with h5py.File(sys.argv[1], "a") as f:
		    f["/cells/bytes"][:, 1], f["/cells/size_frac"][:, 1] = f["/cells/bytes"][:, 0], 1
		    f["/cells/bytes_read"] = f["/cells/bytes"][:]
		    f["/cells/bytes_read"][:, 1] //= 10
		    f["/cells/bytes_read"][:, 2] = -1
		    $2
	PY
}
change table.h5 || exit
cat >tiers.json <<-JSON
	{"evp":"tiers","version":1,"tiers":[{"name":"ssd","kind":"file","uri":"/tmp/x","capacity_bytes":500000,
	"read_bytes_per_s":1e5,"write_bytes_per_s":1e5,"latency_s":0.01}]}
JSON
rows() { sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)","tier":"\([^"]*\)".*"bytes":\([0-9]*\),.*"ttft_s":\([^,]*\),.*"utility":\([^,]*\),.*/\1 \2 \3 \4 \5 \6/p' "$1"; }
evp-plan -q table.h5 --tiers tiers.json --raw --min-quality 0.7 --alpha 2 -o m.jsonl && rows m.jsonl
grep -o '"fill_bytes":[0-9]*' m.jsonl
evp-plan -q table.h5 --verify m.jsonl && echo verified
evp-report -q table.h5 m.jsonl | sed 's/<[^>]*>/ /g' | awk '$1 == "keydiff:drop=0.5" && $3 == "390.6" { print "in the report:", $3, "kB", $5 " s" }'
echo "a time as if all were read, bytes as if only those were kept, too little room:"
try 's/"ttft_s":0.42[0-9]*,/"ttft_s":4.02,/' 2>&1
try 's/"bytes":400000,"kv_bytes":400000/"bytes":40000,"kv_bytes":400000/' 2>&1
try 's/"capacity_bytes":500000/"capacity_bytes":499999/' 2>&1
echo "a rate of requests: the tier's time by what is read"
evp-plan -q table.h5 --tiers tiers.json --raw --min-quality 0.7 --alpha 2 --rate 0.3 -o m.jsonl && evp-plan -q table.h5 --verify m.jsonl && rows m.jsonl | cut -d' ' -f1-4
grep -o '"tier_use":[^]]*' m.jsonl
echo "what a live plan needs: it takes all bytes as read"
evp-plan -q table.h5 --tiers tiers.json --raw --min-quality 0.7 --alpha 2 --online -o m.jsonl && evp-plan -q table.h5 --verify m.jsonl && rows m.jsonl
echo "moves and packing write all of it"
evp-plan -q table.h5 --tiers tiers.json --raw --min-quality 0.7 --alpha 2 -o m.jsonl
sed 's/"name":"ssd"/"name":"hdd"/; s:/tmp/x:/tmp/y:' tiers.json >other.json
evp-plan -q table.h5 --tiers other.json --raw --min-quality 0.7 --alpha 2 --previous m.jsonl --max-move 400K -o n.jsonl && rows n.jsonl | cut -d' ' -f1-5
evp-plan -q table.h5 --verify n.jsonl --previous m.jsonl && echo verified
echo "requests: the cache holds 500 kB"
printf '{"context":"c%d","at":%d}\n' 2 100 2 200 0 300 1 400 2 500 1 600 >log.jsonl
evp-replay -q table.h5 --tiers tiers.json --trace log.jsonl --policy lru+keydiff:drop=0.5 --rate 0 --warm 0 --per-request q.tsv -o r.tsv
cut -f3- q.tsv
evp-replay -q table.h5 --tiers tiers.json --trace log.jsonl --policy live --alpha 2 --rate 0 --warm 0 --per-request q.tsv -o r.tsv
awk '$4 == 2 { print "live:", $9, "is best if all is read" }' q.tsv
echo "shown:"
evp-show table.h5 | grep -A3 '^ *config ' | awk '{ print $1, $NF }'
echo "refused:"
cp table.h5 bad.h5
/usr/bin/python3 -c 'import h5py; h5py.File("bad.h5", "a")["/cells/bytes_read"][1, 1] = 200001'
evp-plan -q bad.h5 --tiers tiers.json -o n.jsonl 2>&1; echo $?

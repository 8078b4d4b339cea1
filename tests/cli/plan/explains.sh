# What a plan says in words: that everything fits, utility per use, a price that is nothing, the one gap; and which file is
# missing where a plan cannot be verified without it.
cp "$DATA/table.h5" "$DATA/tiers.json" .
plan() { evp-plan table.h5 --tiers "$@" 2>&1 >m.jsonl | sed -n 's/^evp-plan: //; /per use\|price\|no plan\|fits/p'; }
roomy() { printf '{"evp":"tiers","version":1,"tiers":[{"name":"dram","kind":"file","uri":"/dev/shm/x","capacity_bytes":%s,"read_bytes_per_s":1e10,"write_bytes_per_s":1e10,"latency_s":0}]}\n' "$1"; }
roomy null >roomy.json
plan roomy.json --alpha 10
echo
echo '{"context":"c0","count":6}' >access.jsonl
plan tiers.json --access access.jsonl
echo
plan tiers.json --solver evicpress --alpha 0.01 | tail -n 1
evp-plan table.h5 --tiers tiers.json --alpha 1,2 -o few 2>&1 | grep -c 'per use'
evp-plan table.h5 --tiers tiers.json --alpha 1,2 -o few -v 2>&1 | grep -c 'this plan.*per use'
echo
evp-plan -q table.h5 --tiers tiers.json -o first.jsonl
printf '{"context":"c1","count":40}\n{"context":"c0","count":1}\n' >other.jsonl
evp-plan -q table.h5 --tiers tiers.json --access other.jsonl --previous first.jsonl --move-cost 1e6 -o second.jsonl
evp-plan -q table.h5 --verify second.jsonl --previous first.jsonl; echo "status $?"
evp-plan -q table.h5 --verify second.jsonl 2>&1 | sed 's/is [0-9.e-]* in/is U in/; s/[0-9.e-]* by the table/T by the table/'

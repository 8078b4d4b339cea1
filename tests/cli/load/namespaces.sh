# Two models and a tenant in the same folders: each load touches its own payloads only, and capacities hold together.
. "$TOP/tests/cli/load/plans.inc"
sqlite() { python3 -c 'import sqlite3, sys; [print(*r) for r in sqlite3.connect(sys.argv[1]).execute(sys.argv[2])]' "$@"; }
plan m 70000 100000 <<-END
	a1 100 none dram
	a2 50 knorm:drop=0.5 dram
	b1 200 kivi:bits=2 ssd
END
evp-load -q m.jsonl --payloads pay || exit
evp-load -q m.jsonl --payloads pay --namespace tenant || exit
sqlite dram/evp-state 'SELECT length(s.name), context, config FROM payload AS p JOIN namespace AS s ON s.number = p.namespace'
echo 'x1 100 none dram' | plan one 70000 100000
evp-load one.jsonl --payloads pay --namespace tenant || exit
placed
evp-load m.jsonl --payloads pay
evp-load -q --rollback m.jsonl --namespace tenant
echo "status $?"
evp-load -q --rollback one.jsonl --namespace tenant --payloads pay || exit
placed
evp-show --check dram ssd
# together they may take no more than the tier has, unless the tier says so
echo 'y1 120 none dram' | plan large 70000 100000
evp-load -q large.jsonl --payloads pay --namespace other
echo "status $?"
sed 's/"capacity_bytes":70000/"total_bytes":200000,&/' large.jsonl >total.jsonl
evp-load -q total.jsonl --payloads pay --namespace other || exit
placed
name=$(printf '%0128d' 0)
evp-load -q total.jsonl --payloads pay --namespace "$name"
echo "status $?"

# A server that is killed while a load is at work, and comes back empty: the load leaves out what is not there yet, and the next one,
# of another manifest, places everything. Each load writes 400 payloads; the server is killed among them, or before.
. "$TOP/tests/cli/load/redis.inc"
start
{
	echo "tier dram dram $PWD/dram -"
	echo "tier far redis redis://127.0.0.1:$port,$PWD/far -"
	seq 800 | sed 's/.*/context a& 40 none far/; n; s/.*/context a& 40 none dram/'
} >spec
"$BUILD/tests/tools/make-load" sunday.jsonl pay <spec
sed 's/ none / knorm:drop=0.5 /' spec | "$BUILD/tests/tools/make-load" monday.jsonl pay
sed 's/ none / kivi:bits=2 /' spec | "$BUILD/tests/tools/make-load" tuesday.jsonl pay
evp-load -q sunday.jsonl --payloads pay || exit
for keys in 402 420 450 500 600; do
	evp-load -q monday.jsonl --payloads pay --jobs 1 >said 2>&1 &
	load=$!
	while kill -0 $load 2>>redis.log && [ "$(cli dbsize)" -lt $keys ]; do :; done
	kill_server
	wait $load
	status=$?
	case $status in
	0) ;;
	1) grep -q 'redis at ' said && echo interrupted >interrupted || cat said ;;
	*) echo "status $status" && cat said ;;
	esac
	evp-show --check dram >checked || exit
	start
	evp-load -q tuesday.jsonl --payloads pay >said 2>&1 || { echo "status $?"; cat said; }
	evp-show --check dram far >checked || exit
	where | cut -d ' ' -f 1,3 | sort | uniq -c
	cli --scan --pattern 'evp:*{*' | wc -l
	evp-load -q sunday.jsonl --payloads pay || exit
	where | cut -d ' ' -f 1,3 | sort | uniq -c
done | sort | uniq -c
cat interrupted

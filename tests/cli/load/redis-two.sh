# Two loads of one tier: one waits for the other. Two stores on one server, and two namespaces in one store, keep apart.
. "$TOP/tests/cli/load/redis.inc"
start
contexts() { seq 100 | sed "s/.*/a& 40 $1 far/"; }
contexts none | redis_plan one
contexts knorm:drop=0.5 | redis_plan two
for i in 1 2 3; do
	evp-load -q --wait 60 one.jsonl --payloads pay & first=$!
	evp-load -q --wait 60 two.jsonl --payloads pay & second=$!
	wait $first && wait $second || echo "status $?"
	evp-show --check far >checked || exit
	where | cut -d ' ' -f 1,3 | uniq -c | wc -l
	cli --scan --pattern 'evp:*{*' | wc -l
done
flock far/evp-lock evp-load -q one.jsonl --payloads pay 2>&1 | hide
evp-load -q one.jsonl --payloads pay --namespace other && where | wc -l
sed "s|$PWD/far|$PWD/near|" one.jsonl >near.jsonl
evp-load -q near.jsonl --payloads pay || exit
rows near | wc -l
printf '{"evp":"x"}' >none
{ echo "tier far redis redis://127.0.0.1:$port,$PWD/near -"; echo "context z1 10 none far"; } | "$BUILD/tests/tools/make-load" small.jsonl pay
evp-load -q small.jsonl --payloads pay && evp-load -q small.jsonl && evp-show --check near far >checked && where | wc -l
# A state belongs to one server.
sed "s|127.0.0.1:$port|127.0.0.1:$port/3|" small.jsonl >other.jsonl
evp-load -q other.jsonl --payloads pay 2>&1 | hide
# The other database of the server is another place.
sed "s|$PWD/near|$PWD/third|" other.jsonl >third.jsonl
evp-load -q third.jsonl --payloads pay && cli -n 3 dbsize

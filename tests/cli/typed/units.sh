# Times, counts, shares and sizes take units; a number without its unit that is hardly meant is asked about.
. "$TOP/tests/cli/typed/said.inc"
plan="evp-plan table.h5 --tiers tiers.json"
said $plan --min-quality 90
said $plan --min-quality 0,9
said $plan --min-quality much
said $plan --slo-ttft 500 ms
said $plan --slo-ttft soon
said $plan --alpha ten
said $plan --max-move much
said evp-import --requests contexts.jsonl --half-life 3weeks -o mine
said evp-qgen contexts.jsonl --per-context 1.5
said evp-profile contexts.jsonl q.jsonl --memory lots -o p.h5
echo 'the same plans:'
plan() {
	evp-plan table.h5 --tiers tiers.json -q "$@" -o m.jsonl && sed '1s/"args":\[[^]]*\]//' m.jsonl
}
same() {
	plan $1 >a
	plan $2 >b
	cmp a b && echo "$1 = $2"
}
same '--slo-ttft 500ms --slo-weight 2' '--slo-ttft 0.5 --slo-weight 2'
same '--min-quality 90%' '--min-quality 0.9'
same '--alpha 1' '--alpha 1e0'
log() {
	printf '{"time":%s,"messages":[{"role":"system","content":"%s"},{"role":"user","content":"Question %s?"}]}\n' $1 "$long" $1
}
long=$(printf '%2000s' '' | tr ' ' x)
for t in 1700000000 1700100000 1700200000; do log $t; done >log.jsonl
for half in 3d 72 72h 4320min; do
	evp-import --requests log.jsonl -q --half-life $half -o mine && echo "$half $(grep -o '"count":.*' mine/access.jsonl)"
done
cp "$DATA/longbench/ten.jsonl" .
for n in 1k 1K 1000 0.001M; do evp-import -q ten.jsonl --model model.gguf --chat-template none --max-tokens $n 2>&1 | grep -c '"id"'; done | uniq
echo 'small sizes:'
evp-plan table.h5 --tiers tiers.json --previous manifest.jsonl --max-move 10 2>&1 >m.jsonl | head -n 1
evp-tiers --tier name=a,uri=.,capacity=200,read=1G,write=1G,latency=1ms 2>&1 >t.json | grep warning
evp-tiers --tier name=a,uri=.,capacity=2M,read=1G,write=1G,latency=1ms --probe 1M 2>&1 >t.json | grep -c warning
true

# A trace of each dialect: what comes again of its prompts, and what is found out of blocks and times.
gain() { timeout 20 evp-gain --model synthetic:tiny --gpu L4 --dram 1G "$@" 2>&1 | sed -n "s|$DATA/||; /requests  \|span\|prompt tokens\|comes again/s/  */ /gp; /read as\|blocks of\|assumed: the\|assumed: one\|left out\|error/p"; }
for trace in mooncake bailian aiperf exact text-ids lmcache kv-cache-tester seconds; do
	echo "$trace:"
	gain "$DATA/traces/$trace.jsonl"
done
for trace in azure burstgpt; do
	echo "$trace:"
	gain "$DATA/traces/$trace.csv"
	gain "$DATA/traces/$trace.csv" --reuse zipf:0,1
done
echo 'another unit, another share:'
gain "$DATA/traces/seconds.jsonl" --time-unit ms | grep span
gain "$DATA/traces/mooncake.jsonl" --time-unit us | grep span
gain "$DATA/traces/azure.csv" --reuse zipf:1,1,1 | grep again
for reuse in zipf zipf:1 zipf:1,0 zipf:-1,5 zipf:1,5,2 zipf:1,5,.5,1 lru:1,5; do gain "$DATA/traces/azure.csv" --reuse $reuse; done
echo 'a second trace of the same kind, and of another:'
gain "$DATA/traces/mooncake.jsonl" "$DATA/traces/exact.jsonl"
gain "$DATA/traces/mooncake.jsonl" "$DATA/traces/lmcache.jsonl"
replay() { evp-replay --tiers "$DATA/tiers.json" --policy prefill -m synthetic:tiny --gpu L4 "$@" 2>&1 >/dev/null | sed "s|$DATA/||g" | grep -v 'TTFT\|assumed: bytes'; }
echo 'evp-replay:'
replay --assume '' --trace "$DATA/traces/mooncake.jsonl,$DATA/traces/text-ids.jsonl" --trace "$DATA/traces/exact.jsonl"
replay --assume '' --trace "$DATA/traces/azure.csv" --reuse zipf:1,3
replay --assume '' --trace "$DATA/traces/azure.csv"
plain() { evp-replay "$DATA/table.h5" --tiers "$DATA/tiers.json" --policy prefill --contexts zipf:1 "$@" 2>&1 >/dev/null | sed -n "s|$DATA/||g; s/TTFT.*//; p"; }
plain --trace "$DATA/traces/mooncake.jsonl,$DATA/traces/azure.csv"
plain --trace "$DATA/traces/bailian.jsonl"
plain --trace "$DATA/traces/bailian.jsonl" --time-unit ms
plain --trace "$DATA/traces/azure.csv" --reuse zipf:1,3
exit 0

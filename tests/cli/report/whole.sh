# Whole pages to the byte, but for their style and version: a table with a plan and a sweep, replays, a table of one context;
# headings without totals. Look at the pages in a browser before --update.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
bare() { sed '/<style>/,/<\/style>/d; s/EvicPress [0-9][0-9.]*/EvicPress/'; }
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 6 5
evp-tiers -q --tier name=dram,uri=redis://a:1,capacity=20M,read=5G,write=5G,latency=0.0001 \
	--tier name=ssd,uri=redis://b:1,capacity=30M,read=1G,write=1G,latency=0.001 -o tiers.json
for i in $(seq 0 5); do echo "{\"context\":\"context/$i\",\"count\":$((40 - 6 * i))}"; done >access.jsonl
evp-plan -q table.h5 --tiers tiers.json --access access.jsonl --alpha 0.03,0.3,1,3,30 -o sweep 2>said
evp-report -q table.h5 sweep/manifest-1.jsonl sweep/frontier.tsv | bare
evp-replay -q table.h5 --tiers tiers.json --trace poisson:1,60 --contexts zipf:1 --policy prefill,lru,gdsf,night --rate 0.05,0.2 --alpha 1,10 -o r.tsv
evp-report -q r.tsv | bare
/usr/bin/python3 "$TOP/tests/cli/report/world.py" one.h5 1 2
evp-report -q one.h5 | bare
echo "headings of the plan, with its totals and without:"
sed 's/"totals":\[[^]]*\]/"totals":[]/' sweep/manifest-1.jsonl >bare.jsonl
for plan in sweep/manifest-1.jsonl bare.jsonl; do evp-report -q table.h5 $plan sweep/frontier.tsv | grep -oE '<h[123][^<]*'; done

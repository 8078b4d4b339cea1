# A load that was killed is continued or replaced by any next one, whatever its manifest is called.
. "$TOP/tests/cli/load/plans.inc"
contexts() { seq 200 | sed "s/.*/a& 4 $1 dram/; n; s/.*/a& 4 $1 ssd/"; }
contexts none | plan sunday 200000 200000
contexts knorm:drop=0.5 | plan monday 200000 200000
contexts kivi:bits=2 | plan tuesday 200000 200000
evp-load -q sunday.jsonl --payloads pay || exit
for kill in 0.002 0.005 0.01 0.02 0.04 0.08 0.16; do
	timeout -s KILL $kill evp-load -q monday.jsonl --payloads pay >killed 2>&1
	evp-load -q --wait 60 tuesday.jsonl --payloads pay && evp-show --check dram ssd >checked || exit
	placed | cut -d ' ' -f 1,3 | uniq -c
	timeout -s KILL $kill evp-load -q --wait 60 --rollback tuesday.jsonl --payloads pay >killed 2>&1
	evp-load -q --wait 60 sunday.jsonl --payloads pay && evp-show --check dram ssd >checked || exit
	placed | cut -d ' ' -f 1,3 | uniq -c
done | sort | uniq -c

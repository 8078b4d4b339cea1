# A process that puts, moves and removes payloads is killed at random moments, while others read; see put-killed.py.
. "$TOP/tests/cli/load/plans.inc"
. "$TOP/tests/cli/load/python.inc"
contexts() { for letter in a b c d e f g h; do for n in 20 90 300; do echo "$letter$n $n $1 $2"; done; done; }
# so many others beside them that writing the index of ssd takes a moment
{ contexts none ssd && seq -f 'z%g 2 none ssd' 1100; } | plan m 120000 2000000
contexts knorm:drop=0.5 ssd | plan half 120000 1000000
contexts kivi:bits=2 dram | plan small 1000000 1000000
evp-load -q m.jsonl --payloads pay || exit
"$python" "$TOP/tests/cli/load/put-killed.py" m.jsonl half.jsonl small.jsonl || exit
# the next load undoes what the manifest does not say
evp-load -q m.jsonl --payloads pay && evp-show --check dram ssd
placed | cut -d ' ' -f 1,3 | sort | uniq -c

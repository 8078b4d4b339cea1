# TTFT of kinds of policies at one quality, by hand: a and b of a kind lie on a line, c above it, d is better and slower.
tsv() { printf 'policy\trate\talpha\trequests\tttft_mean_s\tquality\n'; }
row() { printf '%s\t%s\t1\t10\t%s\t%s\n' "$@"; }
{ tsv
row lru+kivi:bits=2 1 0.1 0.5
row lru+kivi:bits=4 1 0.3 0.9
row lru+kivi:bits=3 1 0.3 0.6
row lru+snapkv:drop=0.5+kivi:bits=4 1 0.2 0.7
row lru 1 1 1
row night 1 0.15 0.8
row night 1 0.55 1
row manifest=a/m-1.jsonl 1 0.25 0.85
row manifest=a/m+2.jsonl 1 0.45 0.95
row manifest=n.jsonl 1 - 0.95
row lru 2 - -
row night 2 0.2 0.8
row night 2 30 1
row lru+kivi:bits=4 2 0.35 0.9
} >r.tsv
evp-report r.tsv --at-quality .5,.7,.9,1 --max-ttft 400ms
no() { evp-report "$@"; echo "status $?"; }
no r.tsv --at-quality x 2>&1
no r.tsv --at-quality .9 --svg 2>&1
no r.tsv --max-ttft 1s 2>&1
no "$DATA/table.h5" --at-quality .9 2>&1
{ tsv; i=0; while [ $i -lt 4097 ]; do row lru 1 1 1; i=$((i + 1)); done; } >long.tsv
no long.tsv --at-quality .9 2>&1
exit 0

# A promised TTFT: what lateness costs is in utility, bound and --verify, also of a live plan's manifest; the floor for
# the worst question; several reads at once. What cannot be kept is refused in a sentence.
. "$TOP/tests/cli/plan/edit.inc"
cp "$DATA/table.h5" .
sed 's/"latency_s":0.01}/"latency_s":0.01,"read_spread":0.2,"parallel":[{"reads":4,"bytes_per_s":2e8,"spread":0.5}]}/' "$DATA/tiers.json" >tiers.json
rows() { sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)","tier":"\([^"]*\)".*"ttft_s":\([^,]*\),"utility":\([^,]*\).*/\1 \2 \3 TTFT \4 utility \5/p' "$1"; }
plan() { evp-plan table.h5 --tiers tiers.json --alpha 2 "$@" 2>&1 | sed -n 's/.*\(expected lateness.*\|error: .*\|utility [0-9.]*, optimal\).*/\1/p'; }
plan -o m.jsonl && rows m.jsonl
plan --slo-ttft 0.02 --slo-weight 50 --online -o m.jsonl && rows m.jsonl
head -n 1 m.jsonl | grep -o '"slo[^,]*'
evp-plan -q table.h5 --verify m.jsonl && echo verified
try 's/"slo_weight":50/"slo_weight":49/'
try 's/"slo_ttft_s":0.02/"slo_ttft_s":0.021/'
try 's/"slo_ttft_s":0.02/"slo_ttft_s":-1/'
try 's/"spread":0.5/"spread":1e9/'
sed '1s/"solver":"optimal"/"solver":"online"/' m.jsonl >live.jsonl # of it the rows are the proof
evp-plan -q table.h5 --verify live.jsonl && echo verified
sed '1s/"slo_weight":50/"slo_weight":49/' live.jsonl >bad.jsonl && evp-plan -q table.h5 --verify bad.jsonl
evp-show m.jsonl | sed -n '/slo\|optimal/p'
plan --summary s.json --slo-ttft 0 --slo-weight 1 -o x.jsonl && grep -o '"late_s":[0-9.]*' s.json
echo 'several reads at once:'
plan --slo-ttft 0.02 --slo-weight 50 --parallel-reads 4 -o n.jsonl && rows n.jsonl
head -n 1 n.jsonl | grep -o '"parallel_reads":[0-9]*'
evp-plan -q table.h5 --verify n.jsonl && echo verified
sed 's/"parallel_reads":4/"parallel_reads":2/' n.jsonl >bad.jsonl && evp-plan -q table.h5 --verify bad.jsonl
echo 'the worst question:'
plan --min-quality-worst 0.95 -o w.jsonl && rows w.jsonl
evp-plan -q table.h5 --verify w.jsonl --min-quality-worst 0.95 && echo verified
evp-plan -q table.h5 --verify m.jsonl --min-quality-worst 0.95
echo 'refused:'
plan --min-quality-worst 0.95 --online -o x.jsonl
plan --slo-ttft 0.5 -o x.jsonl
plan --slo-weight 0.5 -o x.jsonl
echo 'without accesses:'
echo '{"context":"c9"}' >log.jsonl
evp-plan table.h5 --tiers tiers.json --access log.jsonl --access-min-match 0 --access-empty --slo-ttft 0 --slo-weight 1 --summary s.json -o e.jsonl 2>&1 | sed -n 's/^evp-plan: //;/^this plan\|later/p'
grep -c nan e.jsonl s.json
mkdir sweep && evp-plan -q table.h5 --tiers tiers.json --access log.jsonl --access-min-match 0 --access-empty --alpha 1,2 -o sweep
cut -f -4 sweep/frontier.tsv

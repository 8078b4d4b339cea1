# What means cover: held out only with test answers of every compressed context; errors; why nothing is stored; what moves
# take; times that scatter.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip 'no h5py'
{
	printf 'config\tnone\t1\nconfig\tknorm:drop=0.5\t0.5\n'
	printf 'context\ta\nquestion\ttrain\tIt was blue.\tIt was red.\nquestion\ttrain\tNear it.\tNear it.\nquestion\ttest\tA wide road.\tA road.\nquestion\ttest\tOne.\tOne.\n'
	printf 'context\tb\nquestion\ttrain\tThe sun is up.\tThe sun is.\nquestion\ttrain\tIt rains.\tIt rains a lot.\nquestion\ttest\tA tree.\t-\n'
} | "$BUILD/tests/tools/make-profile" p.h5 tiny
evp-score -q p.h5 --embedder "$DATA/minibert" -o t.h5 2>/dev/null
tiers() { printf '{"evp":"tiers","version":1,"tiers":[{"name":"ssd","kind":"file","uri":"/x","capacity_bytes":%s,"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":%s}]}\n' "$1" "$2" >tiers.json; }
plan() { evp-plan "$@" --tiers tiers.json --summary s.json -o m.jsonl 2>&1 | sed -n 's/.*  \(quality .*\)/\1/p; s/^evp-plan: \(recomputing .*\|utility .*\)/\1/p'; }
total() { grep -o '"quality_\(test\|tested\)":[^,]*\|"\(compressed\|tested\)":[^,]*' s.json | sed 's/\(\.[0-9][0-9][0-9]\)[0-9]*/\1/' | tr '\n' ' '; echo; }
tiers 1000 0.01
plan t.h5 --alpha 0 && total
cp m.jsonl before.jsonl
evp-plan -q t.h5 --tiers tiers.json --alpha 0,1 -o sweep && cut -f 2,3,7- sweep/frontier.tsv | sed 's/\(\.[0-9][0-9][0-9]\)[0-9]*/\1/g'
echo 'the use of b is nothing:'
echo '{"context":"a","count":1}' >access.jsonl
plan t.h5 --alpha 0 --access access.jsonl | head -n 1
total
echo 'moves:'
tiers 2000 0.01
plan t.h5 --alpha 10 --previous before.jsonl --move-cost 1000 | tail -n 1
echo 'recomputing:'
tiers 2000 1.5
plan t.h5 --alpha 1 | grep recomputing
tiers 0 0.1
plan t.h5 --alpha 1 | grep recomputing
echo 'noise:'
tiers 2000 0.1
/usr/bin/python3 -c 'import h5py; h5py.File("t.h5", "a")["/contexts/prefill_spread"][:] = [0.1, 0.5]'
evp-plan t.h5 --tiers tiers.json --alpha 1,10 -o noisy 2>&1 | sed -n 's/^evp-plan: \(.*are noisy.*\)/\1/p'

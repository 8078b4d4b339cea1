# Contexts of which each begins with the shorter ones: what is not stored begins with what is. With --chunks also what is
# stored uncompressed begins like what is not.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip 'no h5py'
/usr/bin/python3 "$DATA/table.py" t.h5 3 full nested
sed 's/150000/0/; s/300000/210000/' "$DATA/tiers.json" >tiers.json
for how in '' --chunks '--solver evicpress' '--rate 0.1' '--slo-ttft 1 --slo-weight 1' --online; do
	echo "== $how"
	# shellcheck disable=SC2086 # words
	evp-plan t.h5 --tiers tiers.json --alpha 10 $how -o m.jsonl 2>&1 | grep -e 'this plan  ' -e begin
	evp-plan -q t.h5 --verify m.jsonl && echo verified
	grep -o '"sharing":"[a-z]*"' m.jsonl
done
evp-plan t.h5 --tiers tiers.json --alpha 10 --chunks -q -o m.jsonl
for wrong in 's/"sharing":"chunks",//' 's/"sharing":"chunks"/"sharing":"contexts"/' 's/"sharing":"chunks"/"sharing":"all"/'; do
	sed "$wrong" m.jsonl >bad.jsonl
	evp-plan -q t.h5 --verify bad.jsonl 2>&1
done
evp-plan t.h5 --tiers tiers.json --chunks --online

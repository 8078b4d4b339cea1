# One thread and two make the same manifest, byte for byte.
cp "$DATA/table.h5" "$DATA/tiers.json" .
for n in 1 2; do
	OMP_NUM_THREADS=$n evp-plan -q table.h5 --tiers tiers.json >manifest.jsonl && mv manifest.jsonl $n
done
cmp 1 2 && grep -c '"config"' 1

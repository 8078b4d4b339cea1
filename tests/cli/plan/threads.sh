# One processor and all make the same manifest, byte for byte.
cp "$DATA/table.h5" "$DATA/tiers.json" .
all=$(taskset -cp $$ | sed 's/.*: //')
for cpus in ${all%%[-,]*} "$all"; do
	taskset -c "$cpus" evp-plan -q table.h5 --tiers tiers.json >manifest.jsonl && mv manifest.jsonl "on-$cpus"
done
cmp "on-${all%%[-,]*}" "on-$all" && grep -c '"config"' "on-$all"

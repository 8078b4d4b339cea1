# As many tiers as tiers.json may have, and one more.
printf 'config\tnone\t1\ncontext\ta\nquestion\ttrain\tparis\n' | "$BUILD/tests/tools/make-profile" profile.h5 tiny
for n in 63 64 65; do
	for i in $(seq "$n"); do
		printf '{"name":"t%s","kind":"file","uri":"/t%s","capacity_bytes":null,"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":0}\n' "$i" "$i"
	done | paste -s -d , | sed 's/.*/{"evp":"tiers","version":1,"tiers":[&]}/' >tiers.json
	evp-score -q profile.h5 --embedder "$DATA/minibert" --tiers tiers.json -o table.h5 && evp-show table.h5 | grep tiers
done

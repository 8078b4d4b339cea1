# Where a config keeps more than it reads, a column and a member of the summary say so; without such a config neither is
# there. evp-score carries the bytes on, and its times are those of what is read.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "no h5py"
printf '%b\n' 'config\tnone\t1' 'config\tknorm:drop=0.5\t0.5' 'config\tkivi:bits=4\t1' 'context\ta' \
	'question\ttrain\tit is paris\tit is paris\tit is paris' | "$BUILD/tests/tools/make-profile" all.h5 tiny
cp all.h5 part.h5
/usr/bin/python3 - <<-END
	import h5py
	with h5py.File("part.h5", "a") as f:
	    f["/cells/bytes_read"] = f["/cells/bytes"][:] // [[1, 1, 4]]
END
cat >tiers.json <<-END
	{"evp":"tiers","version":1,"tiers":[{"name":"ssd","kind":"file","uri":"/tmp/x","capacity_bytes":500000,
	"read_bytes_per_s":1e3,"write_bytes_per_s":1e5,"latency_s":0}]}
END
for profile in all part; do
	echo "$profile:"
	evp-score $profile.h5 --tiers tiers.json --embedder "$DATA/minibert" -o t.h5 --summary s.json 2>&1 |
		awk '$2 ~ /^(config|none|knorm:|kivi:)/ { print $2, $11, $12 }'
	grep -o '"config":"[^"]*"\|"size_fraction":[^,]*\|"read_fraction":[^,]*' s.json | tr '\n' ' ' && echo
	evp-show t.h5 | awk '$1 == "config" { print $NF }'
	/usr/bin/python3 -c 'import h5py; t = h5py.File("t.h5"); print(t["/utility/ttft_s"][0, :, 0].tolist(), "/cells/bytes_read" in t)'
done

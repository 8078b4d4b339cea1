# A mean quality instead of an alpha: reached, with a TTFT between the bound and that of every alpha that reaches it, too.
cp "$DATA/table.h5" "$DATA/tiers.json" .
printf '{"context":"c0","count":4}\n{"context":"c1","count":2}\n{"context":"c2"}\n' >access.jsonl
plan() { evp-plan table.h5 --tiers tiers.json --access access.jsonl "$@"; }
plan --alpha 0.01,0.1,0.3,0.5,1,1.5,2,3,4,5,7,10,15,20,30,50,100 -q -o sweep
for quality in 0.5 0.7 0.9 0.95 1; do
	plan --target-quality $quality -o m.jsonl 2>log && evp-plan -q table.h5 --verify m.jsonl
	bound=$(sed -n 's/.*TTFT below \([0-9.e-]*\) s$/\1/p' log)
	sed -n '1s/.*"this plan","utility":[^,]*,"ttft_s":\([^,]*\),"quality":\([^,]*\),.*/\1 \2/p' m.jsonl >found
	awk -v q=$quality -v bound="$bound" 'NR == FNR { ttft = $1; if ($2 < q) print "quality " $2; next }
		FNR > 1 && $2 >= q && $4 < ttft - 1e-9 { print "alpha " $1 " has " $4 ", not " ttft }
		END { print q, (bound > 0 && bound <= ttft + 1e-9 ? "found" : "bound " bound " of " ttft) }' found sweep/frontier.tsv
done
plan --target-quality 0.9 --alpha 3 2>&1 | head -n 1
plan --target-quality 1.5 2>&1 | head -n 1
plan -q --target-quality 0.9 --rate 0.5 -o m.jsonl && evp-plan -q table.h5 --verify m.jsonl && echo with a rate
printf '{"context":"c2","tier":"dram"}\n' >rules.jsonl
plan -q --target-quality 1 --rules rules.jsonl -o n.jsonl 2>&1 || [ -e n.jsonl ] || echo nothing written

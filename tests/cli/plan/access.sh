# c2 is all that is asked for: it gets the fast tier; an access to an unknown context is said and left out.
cp "$DATA/table.h5" "$DATA/tiers.json" .
printf '{"context":"c2","count":50}\n{"context":"c9"}\n{"context":"c2"}\n' >log.jsonl
evp-plan table.h5 --tiers tiers.json --access log.jsonl --solver evicpress |
	sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)","tier":"\([^"]*\)".*"frequency":\([0-9]*\).*/\1 \2 \3 \4/p'

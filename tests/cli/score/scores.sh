# Two shards with another context each, scored as one; scored again as it is: the same scores; and the same bytes for the
# same call.
profile() { "$BUILD/tests/tools/make-profile" "$1" tiny; }
configs='config\tnone\t1\nconfig\tknorm:drop=0.5\t0.5\n'
printf "${configs}context\ta\nquestion\ttrain\tit is paris\tit is paris\nquestion\ttest\ta cache\ta cache\n" | profile a.h5
printf "${configs}context\tb\nquestion\ttrain\ta long context\tit is paris\nquestion\ttest\t\t\n" | profile b.h5
score() { evp-score a.h5 b.h5 --embedder "$DATA/minibert" --tiers "$DATA/tiers.json" --alpha 2 -o table.h5; }
score
mv table.h5 first.h5
score 2>/dev/null
cmp first.h5 table.h5
evp-score table.h5 --embedder "$DATA/minibert" -o again.h5
evp-plan -q table.h5 --tiers "$DATA/tiers.json" --alpha 2 |
	sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)".*"quality":\([0-9.]*\).*/\1 \2 \3/p'

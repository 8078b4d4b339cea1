# Facts that answers keep, where similarity is the same: a year, a name, a negation; what is not in English is counted.
{
	printf 'config\tnone\t1\nconfig\tknorm:drop=0.5\t0.5\nconfig\tkivi:bits=4\t0.25\n'
	printf 'context\ta\nquestion\ttrain\tThe law of 2018 by Anna Schmidt\tThe law of 2012 by Anna Schmidt\tThe law of 2018, by anna schmidt\n'
	printf 'question\ttrain\tIt is not open on Mondays.\tIt is open on Mondays.\tNot on Mondays.\n'
	printf 'question\ttest\tno facts here? none.\tno\t-\n'
	printf 'context\tb\nquestion\ttrain\tDer Vertrag ist nicht von 2018.\tDer Vertrag ist von 2018.\t2012\n'
	printf 'question\ttest\tIt rains.\tIt rains.\tIt rains.\n'
} | "$BUILD/tests/tools/make-profile" p.h5 tiny
evp-score p.h5 --embedder "$DATA/minibert" --summary s.json -o t.h5 2>&1 | sed -n '/facts\|none\|knorm\|kivi/p'
grep -o '"config":"[^"]*"\|"\(facts\|token_f1\)[^,}]*' s.json
evp-show --json t.h5 | grep -o '"config":"[^"]*"\|"\(facts_\|f1_\)[^,}]*'
echo 'floors for facts:'
plan() { evp-plan t.h5 --tiers "$DATA/tiers.json" --alpha 0 "$@" 2>&1 | sed -n 's/^evp-plan: \(of the facts.*\|error.*\)/\1/p'; }
rows() { grep -o '"id":"[^"]*"\|"config":"[^"]*"' m.jsonl | tr '\n' ' '; echo; }
plan -o m.jsonl && rows
plan --min-facts 0.45 -o m.jsonl && rows
evp-plan -q t.h5 --verify m.jsonl --min-facts 0.45 && echo verified
evp-plan -q t.h5 --verify m.jsonl --min-facts 0.99
plan --min-facts 0.45 --sure 0.99 -o m.jsonl && rows
echo '{"context":"b","min_facts":0.9}' >rules.jsonl
plan --rules rules.jsonl -o m.jsonl && rows
plan --rules rules.jsonl --online -o m.jsonl
echo '{"context":"b","min_facts":0.9,"tier":"dram"}' >rules.jsonl
sed 's/"capacity_bytes":150000/"capacity_bytes":600/' "$DATA/tiers.json" >tiers.json
evp-plan -q t.h5 --tiers tiers.json --rules rules.jsonl -o m.jsonl
echo '{"context":"b","min_facts":2}' >rules.jsonl
evp-plan -q t.h5 --tiers tiers.json --rules rules.jsonl -o m.jsonl
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --min-facts 0.5 -o m.jsonl
true

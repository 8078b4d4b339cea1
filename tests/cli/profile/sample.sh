# A random sample is run; every context is a row of the table, also without questions, and has a place in the plan. A
# larger sample of the same seed adds to it. Shards share the sample.
/usr/bin/python3 - <<'END' || exit
import json
with open("c.jsonl", "w") as c, open("q.jsonl", "w") as q:
    for i in range(14):
        text = f"The fox {i} jumps. " + " ".join(str(k * i % 17) for k in range(20 + i))
        c.write(json.dumps(dict(id=f"c{i}", text=text, ask=" {question}")) + "\n")
        for k in range(6 if i < 12 else 0):
            split = "train" if k < 5 else "test"
            q.write(json.dumps(dict(id=f"c{i}/q{k}", context=f"c{i}", split=split, text=f"Who {k}?")) + "\n")
END
run() { evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --max-new-tokens 3 --configs knorm:drop=0.1..0.9/0.4 -q "$@"; }
asked() { "$BUILD/tests/tools/answers" "$1" | grep -v '"n_tokens":-1' | cut -d' ' -f1 | sort -u; }
count() { "$BUILD/tests/tools/answers" "$1" | grep -vc '"n_tokens":-1'; }

run --sample 4 -o p.h5 && count p.h5 # 4 contexts x 6 questions x 4 configs
evp-score p.h5 --embedder "$DATA/minibert" -q -o t.h5 && evp-show --json t.h5 | grep -o -m 1 '"n_contexts":[0-9]*' | head -n 1
evp-plan t.h5 --tiers "$DATA/tiers.json" --alpha 1 -q >m.jsonl && grep -c '"id"' m.jsonl
evp-plan t.h5 --tiers "$DATA/tiers.json" --alpha 1 --verify m.jsonl -q && echo verified

cp p.h5 small.h5
run --sample 50% -o p.h5 && count p.h5
"$BUILD/tests/tools/answers" small.h5 | grep -v '"n_tokens":-1' >few
"$BUILD/tests/tools/answers" p.h5 | grep -v '"n_tokens":-1' >more
grep -vxFf more few | wc -l # every answer is still there
for i in 1 2 3; do run --sample 50% --shard $i/3 -o s$i.h5; done
evp-score s1.h5 s2.h5 s3.h5 --embedder "$DATA/minibert" -q -o shared.h5 && evp-show --json shared.h5 | grep -o -m 1 '"n_contexts":[0-9]*' | head -n 1
count shared.h5
run --sample 4 --seed 2 -o other.h5 && "$BUILD/tests/tools/answers" other.h5 | grep -v '"n_tokens":-1' | cmp -s - few || echo another sample

# A time: at least one context is run, new ones before those with some answers; the next run goes on.
run --sample 0.001s -o timed.h5 && count timed.h5
run --sample 0.001s -o timed.h5 && count timed.h5
evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --max-new-tokens 3 --configs knorm:drop=0.1..0.9/0.4 --sample 0.001s -o timed.h5 2>&1 |
	grep 'time is up'
run --sample 1h -o timed.h5 && count timed.h5
evp-score timed.h5 --embedder "$DATA/minibert" -q -o timed-table.h5 && evp-show --json timed-table.h5 | grep -o -m 1 '"n_contexts":[0-9]*' | head -n 1

for size in 0 0% 101% 12.5 x 0s; do run --sample $size -o bad.h5; echo $?; done

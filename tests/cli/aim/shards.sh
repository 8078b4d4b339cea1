# A list does not depend on how its table was made, in one run or in shares, nor on the number of threads.
/usr/bin/python3 - <<'END' || exit
import json
with open("c.jsonl", "w") as c, open("q.jsonl", "w") as q:
    for i in range(20):
        text = f"The fox {i} jumps. " + " ".join(str(k * i % 17) for k in range(20 + i % 9))
        c.write(json.dumps(dict(id=f"c{i}", text=text, ask=" {question}")) + "\n")
        for k in range(8):
            q.write(json.dumps(dict(id=f"c{i}/q{k}", context=f"c{i}", split="train", text=f"Who {k}?")) + "\n")
END
sed 's/"capacity_bytes":[0-9]*/"capacity_bytes":9000/' "$DATA/tiers.json" >tiers.json
model="--model $DATA/tiny.gguf --max-new-tokens 3"
evp-aim c.jsonl q.jsonl $model --configs knorm:drop=0.1..0.9/0.4 -q -o pilot.jsonl || exit
run() { evp-profile c.jsonl q.jsonl $model --cells pilot.jsonl -q "$@"; }
run -j 1 -o whole.h5 && run -j 2 --shard 1/3 -o s1.h5 && run --shard 2/3 -o s2.h5 && run --shard 3/3 -o s3.h5 || exit
# Measured times differ between runs and belong to what is planned: here they are computed.
score() { evp-score "$@" --embedder "$DATA/minibert" --prefill-tokens-per-s 1000 -q; }
score whole.h5 -o whole-table.h5 && score s1.h5 s2.h5 s3.h5 -o shared-table.h5 || exit
cpus=$(taskset -cp $$ | sed 's/.*: //')
for table in whole shared; do
	for threads in ${cpus%%[-,]*} "$cpus"; do
		taskset -c "$threads" evp-aim c.jsonl q.jsonl $table-table.h5 $model --tiers tiers.json --budget 30% -q -o list.jsonl || exit
		tail -n +2 list.jsonl >list-$table-$threads
	done
done
[ $(grep -c '"context"' "list-whole-$cpus") -gt 5 ] || cat list-whole-* # how many it has, depends on measured times
for list in list-*; do cmp "list-whole-$cpus" "$list"; done
# Less than one request costs is told from nothing to ask.
evp-aim c.jsonl q.jsonl whole-table.h5 $model --tiers tiers.json --budget 1e-9% -o list.jsonl 2>none.err || exit
tail -n 1 none.err

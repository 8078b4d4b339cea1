# A pilot, then lists by what is believed, each within its budget; every context is in the plan, run or not. A run that
# is killed goes on where it was: nothing is asked twice, and the lists are those of a run that was not killed.
/usr/bin/python3 - <<'END' || exit
import json
with open("c.jsonl", "w") as c, open("q.jsonl", "w") as q:
    for i in range(14):
        text = f"The fox {i} jumps. " + " ".join(str(k * i % 17) for k in range(20 + i))
        c.write(json.dumps(dict(id=f"c{i}", text=text, ask=" {question}")) + "\n")
        for k in range(6):
            split = "train" if k < 5 else "test"
            q.write(json.dumps(dict(id=f"c{i}/q{k}", context=f"c{i}", split=split, text=f"Who {k}?")) + "\n")
END
sed 's/"latency_s":[0-9.e-]*/"latency_s":0/; s/"capacity_bytes":[0-9]*/"capacity_bytes":9000/' "$DATA/tiers.json" >tiers.json
model="--model $DATA/tiny.gguf --max-new-tokens 3"
configs=snapkv:drop=0.1..0.9/0.4
count() { "$BUILD/tests/tools/answers" "$1" | grep -vc '"n_tokens":-1'; }
aim() {
	evp-aim c.jsonl q.jsonl $model --configs $configs --tiers tiers.json --alpha 1 --budget 50% --rounds 3 --run -q \
		--profile-options -q --score-options "--embedder $DATA/minibert -q" "$@"
}

# By hand: the pilot, then a list from its table.
evp-aim c.jsonl q.jsonl $model --configs $configs -q -o pilot.jsonl || exit
grep -c '"context"' pilot.jsonl
evp-profile c.jsonl q.jsonl $model --cells pilot.jsonl -q -o p.h5 && evp-score p.h5 --embedder "$DATA/minibert" -q -o t.h5 || exit
count p.h5
evp-aim c.jsonl q.jsonl t.h5 $model --tiers tiers.json --alpha 1 --budget 10% -o list.jsonl 2>list.err || exit
sed -n 's/.*answers: \([0-9]*\).*/\1/p' list.err | awk '{ print $1 <= 10 ? "within its budget" : "too much: " $1 " %" }'
cp list.jsonl again.jsonl; evp-aim c.jsonl q.jsonl t.h5 $model --tiers tiers.json --alpha 1 --budget 10% -o list.jsonl 2>list.err && cmp list.jsonl again.jsonl
grep -c '"test"' list.jsonl
evp-plan t.h5 --tiers tiers.json --alpha 1 -q | grep -c '"id"'

# In one go, and killed again and again.
aim -o whole || exit
sed 's/.*"configs":\[.*\],"q/q/' whole/cells-1.jsonl | grep -c question
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	timeout -s KILL 0.$((i * 7 % 10))5 sh -c 'exec "$@"' sh evp-aim c.jsonl q.jsonl $model --configs $configs --tiers tiers.json \
		--alpha 1 --budget 50% --rounds 3 --run -q --profile-options -q \
		--score-options "--embedder $DATA/minibert -q" -o killed 2>/dev/null
done
aim -o killed 2>/dev/null || aim -o killed || exit
# Times differ from run to run, and so do lists by what is believed; the pilot does not.
for d in whole killed; do grep '"context"' $d/cells-0.jsonl >$d.rows; done
cmp whole.rows killed.rows
for d in whole killed; do
	/usr/bin/python3 - $d <<'END' && [ "$(count $d/profile.h5)" = "$(cat wanted)" ] && echo "$d: the answers of its lists"
import glob, json, sys
cells = [(q, v) for path in glob.glob(sys.argv[1] + "/cells-*.jsonl") for row in map(json.loads, open(path))
         if "context" in row for q in row["questions"] for v in row["configs"]]
assert len(cells) == len(set(cells)), "asked twice"
print(len(cells) + len({q for q, v in cells}), file=open("wanted", "w"))
END
done
cp whole/profile.h5 before.h5
aim -o whole && cmp whole/profile.h5 before.h5

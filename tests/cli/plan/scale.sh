# --quality-scale same-meaning: a variant as near as a second answer of the uncompressed cache has quality 1, one as near as an
# answer to another question 0.
configs='config\tnone\t1\nconfig\tknorm:drop=0.5\t0.5\nconfig\tkeydiff:drop=0.5\t0.5\nconfig\tkivi:bits=2\t0.2\n'
q() { printf 'question\t%s\t%s\t%s\t%s\t%s\n' "$@"; }
table() { "$BUILD/tests/tools/make-profile" p.h5 tiny && evp-score p.h5 --embedder "$DATA/minibert" -q -o t.h5; }
answers() { # SECOND ANSWERS
	printf "${configs}context\ta\n"
	q train "it is paris" "it is paris" "it is paris" "it is it paris"
	[ "$1" = none ] || printf 'sampled\t%s\n' "$1"
	q train "a long context" "a long context" "a long cache" "a long context it is"
	[ "$1" = none ] || printf 'sampled\ta long context\n'
	q test "it is rome" "it is rome" "it is a cache" "a"
}
answers "it is a paris" | table
evp-show --json t.h5 >t.json
plan() { evp-plan t.h5 --tiers "$DATA/tiers.json" --alpha 1 "$@"; }
plan --raw -q -o m.jsonl --quality-scale same-meaning && evp-plan -q t.h5 --verify m.jsonl && echo verified
plan -q -o p.jsonl --quality-scale same-meaning && evp-plan -q t.h5 --verify p.jsonl && echo verified
plan --online --raw -q -o o.jsonl --quality-scale same-meaning && evp-plan -q t.h5 --verify o.jsonl && echo verified
plan --online --raw -q -o c.jsonl
python3 - <<'END'
import json, re
table = json.load(open("t.json"))
text = json.dumps(table)
u, s = (float(re.search(f'"{name}": *([0-9.e-]+)', text).group(1)) for name in ("unrelated", "same_meaning"))
def forms(path):
    head, row = map(json.loads, open(path).readlines()[:2])
    return {head["configs"][c]: q for c, q in zip(row["forms"]["config"], row["forms"]["quality"])}
scaled, plain = forms("o.jsonl"), forms("c.jsonl")
for config, q in scaled.items():
    assert abs(q - min(max((plain[config] - u) / (s - u), 0), 1)) < 1e-6, (config, q, plain[config], u, s)
print("on the scale", sorted(scaled), 0 < min(scaled.values()) < 1)
END
sed '1s/"quality_scale":"same-meaning",//' o.jsonl >bad.jsonl && evp-plan -q t.h5 --verify bad.jsonl 2>&1 | sed 's/is [0-9.]* in/is Q in/; s/[0-9.]* by the table/R by the table/'
sed '1s/"quality_scale":"same-meaning"/"quality_scale":"other"/' m.jsonl >bad.jsonl && evp-plan -q t.h5 --verify bad.jsonl 2>&1
answers none | table
plan --quality-scale same-meaning 2>&1 | head -n 1
answers "a cache" | table
plan --quality-scale same-meaning 2>&1 | head -n 1

# The uncompressed cache's second answers are the same in every run: whole, shared out, extended, with other configs and in
# other batches. They differ from the first ones; --temperature 0 and --cells leave them out; two temperatures do not mix.
for n in 1 2 3; do
	printf '{"id":"c%s","text":"The fox jumps over Reginald %s times.","ask":" {question}"}\n' $n $n >>c.jsonl
	printf '{"id":"q%s","context":"c%s","split":"train","text":"What is the name?"}\n' $n $n >>q.jsonl
	printf '{"id":"r%s","context":"c%s","split":"test","text":"How many times?"}\n' $n $n >>q.jsonl
done
profile() { evp-profile c.jsonl q.jsonl --model synthetic:tiny --chat-template none --max-new-tokens 6 -q "$@"; }
sampled() { # FILE...: context, question and second answer of each that was asked
	/usr/bin/python3 - "$@" <<'PY' | sort
import sys, h5py
for path in sys.argv[1:]:
    with h5py.File(path) as f:
        ids, texts = f["/questions/id"][:], f["/sampled/text"][:]
        for i, n in enumerate(f["/sampled/n_tokens"][:]):
            if n >= 0:
                print(ids[i].decode(), n, texts[i])
PY
}
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip 'no h5py'
profile --configs none,knorm:drop=0.5 -o whole.h5
sampled whole.h5 >whole
wc -l <whole
for i in 1 2; do profile --configs kivi:bits=2 --shard $i/2 -o shard-$i.h5; done
sampled shard-1.h5 shard-2.h5 | cmp - whole && echo 'shared out'
profile --only train -o parts.h5 --configs none && sampled parts.h5 | wc -l && profile -o parts.h5 --configs none,tova:drop=0.5
sampled parts.h5 | cmp - whole && echo 'in two runs'
cp parts.h5 before.h5
profile -o parts.h5 --configs none,tova:drop=0.5 && cmp parts.h5 before.h5 && echo 'nothing is done twice'
profile --temperature 0 --configs none -o none.h5
sampled none.h5 | wc -l
profile --configs none -o none.h5 && sampled none.h5 | wc -l # its first answers are there
evp-profile c.jsonl q.jsonl --model synthetic:tiny --chat-template none --max-new-tokens 6 -q --temperature 1.5 --configs keydiff:drop=0.5 -o whole.h5 2>&1
echo "status $?"
profile --temperature 1.5 --configs none -o other.h5
sampled other.h5 | cmp -s - whole || echo 'another temperature, other answers'
/usr/bin/python3 - <<'PY'
import h5py
with h5py.File("whole.h5") as f:
    same = [a == b for a, b in zip(f["/answers/text"][:, 0], f["/sampled/text"][:])]
    print("temperature", f.attrs["temperature"], "all as the first" if all(same) else "not as the first")
PY
echo '{"context":"c1","configs":["none","knorm:drop=0.5"],"questions":["q1"]}' >cells.jsonl
profile --cells cells.jsonl -o cells.h5 && sampled cells.h5 | wc -l
profile --cells cells.jsonl --temperature 0.3 -o asked.h5 && sampled asked.h5 | grep -cxFf whole

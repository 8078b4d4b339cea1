# The ids of a context are those that a profile knows it by, with turns too; which contexts and files are refused.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
cat >contexts.jsonl <<'END'
{"id":"plain","text":"The fox jumps over the dog, and the dog sleeps on. The fox is brown."}
{"id":"prompt","text":"The fox jumps over the dog again and again.","ask":"{question}","turns":[{"role":"prompt","chars":43}]}
END
for id in plain prompt; do
	echo "{\"id\":\"$id/q\",\"context\":\"$id\",\"split\":\"train\",\"text\":\" Who?\"}"
done >questions.jsonl
evp-profile -q contexts.jsonl questions.jsonl --model "$DATA/tiny.gguf" --configs knorm:drop=0.5 --max-new-tokens 2 -o p.h5
for id in plain prompt; do evp-show contexts.jsonl --model "$DATA/tiny.gguf" --ids $id >$id.ids; done
/usr/bin/python3 - <<'END'
import hashlib, struct
import h5py
t = h5py.File("p.h5")
for i, d in zip(t["contexts/id"].asstr(), t["contexts/token_digest"].asstr()):
    ids = [int(v) for v in open(f"{i}.ids").read().split()]
    print(i, len(ids), hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest() == d)
END
try() { evp-show "$@" 2>&1 | sed "s|$DATA/||"; }
try contexts.jsonl --model "$DATA/tiny.gguf" --ids none
try questions.jsonl --model "$DATA/tiny.gguf" --ids plain
try --ids plain
try contexts.jsonl --ids plain --json
try contexts.jsonl --model "$DATA/tiny.gguf"

# The times of a serving GPU instead of those of the profile: by its name, or by a rate.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs knorm:drop=0.5 -q -o p.h5 || exit
score() { evp-score "$@" --embedder "$DATA/minibert" -o t.h5; }
prefill() { evp-show --json t.h5 | grep -o '"prefill_s":[^,]*'; }
score -q p.h5 --prefill-tokens-per-s 1000 && prefill
score p.h5 --gpu H200 2>&1 | grep computed
prefill # the same on every machine: operations of the model's shape by the figures of the data sheet
score -q p.h5 --gpu tpu
echo "status $?" >&2
# A profile that does not say what its prefill takes.
score -q "$DATA/table.h5" --gpu H200
echo "status $?" >&2
score -q "$DATA/table.h5" --gpu H200 --prefill-tokens-per-s 1000

# A full disk, played by a limit on file sizes: one sentence, nothing half written; with free bytes again it goes on.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
(ulimit -f 4 && evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens 2 --configs none -q -o p.h5)
echo "status $?" >&2
[ -e p.h5 ] && echo "a file was left"
evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens 2 --configs none -q -o p.h5

# A config that the model cannot have is left out of the default list, and refused when it was asked for.
printf '{"id":"a","text":"One.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What?"}\n' >q.jsonl
profile() { evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens 2 -q -o p.h5 "$@"; }
profile
echo "status $?" >&2
evp-show --json p.h5 | grep -o '"config":"[^"]*"'
profile --configs kivi:bits=4

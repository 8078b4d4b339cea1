# How long the work would take on a GPU that is not here: of a shape, without weights, a device or a file; and what is refused.
printf '{"id":"a","text":"%s","ask":" {question}"}\n' "$(seq -s ' ' 900)" >c.jsonl
printf '{"id":"q","context":"a","split":"train","text":"Who jumps?"}\n' >q.jsonl
on() { evp-profile c.jsonl q.jsonl --model synthetic:llama-3.1-8b --configs keydiff:drop=0.5 -o p.h5 "$@" 2>&1; echo "status $?"; }
on --dry-run --on H100
on --dry-run --on h200,10x4k --summary s.json | tail -n 2
grep -o '"seconds_there":0\.[0-9]' s.json
on --dry-run --on L4
on --on H100
on --dry-run --on tpu
on --dry-run --on H100,many
on --dry-run --on H100,0x1
on --dry-run --on H100 --dtype f32 | grep warning
ls

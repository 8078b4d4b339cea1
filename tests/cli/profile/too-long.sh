# Left out before anything runs, and named; the other is profiled. Cut only when told so.
text=$(yes 'It was a bright cold day in April. ' | head -n 20 | tr -d '\n')
printf '{"id":"long","text":"%s","ask":" {question}"}\n{"id":"short","text":"Two.","ask":" {question}"}\n' "$text" >c.jsonl
printf '{"id":"q%s","context":"%s","split":"train","text":"What?"}\n' 1 long 2 short >q.jsonl
profile() {
	evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --configs knorm:drop=0.5 --max-new-tokens 8 "$@"
}
profile -q -o p.h5
echo "status $?" >&2
profile --truncate --dry-run -o n.h5
status=$?
ls n.h5* 2>/dev/null
exit $status

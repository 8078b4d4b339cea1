# What can be refused without a device is refused before one is opened: no run here comes as far as its backend, which
# this build does not have.
printf '{"id":"a","text":"One.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What?"}\n' >q.jsonl
profile() {
	evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl -q -o p.h5 --configs "${configs:-none}" "$@"
	echo "status $?" >&2
}
profile --max-new-tokens 2
profile --max-new-tokens 3 --backend cuda
profile --max-new-tokens 256 --backend cuda --overwrite
configs=kivi:bits=2 profile --max-new-tokens 2 --backend cuda
printf '{"id":"a","text":"Changed.","ask":" {question}"}\n' >c.jsonl
profile --max-new-tokens 2 --backend cuda
: >p.h5
profile --backend cuda

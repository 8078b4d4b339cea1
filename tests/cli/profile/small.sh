# A whole small profile; again: nothing is done; with one config more: only that is; other options are refused, and a
# changed text, and a file that was cut.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
profile() {
	evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens ${tokens:-2} -q "$@"
}
profile --configs knorm:drop=0.5 -o p.h5 || exit
cp p.h5 one.h5
profile --configs knorm:drop=0.5 -o p.h5 || exit
cmp p.h5 one.h5 || exit
profile --configs knorm:drop=0.5,keydiff:drop=0.5 -o p.h5 || exit
cmp -s p.h5 one.h5 && echo "not extended"
[ -e p.h5.d ] && echo "the folder of shards is still there"
tokens=3 profile --configs knorm:drop=0.5 -o p.h5
echo "status $?" >&2
printf '{"id":"a","text":"Another text.","ask":" {question}"}\n' >other.jsonl
evp-profile --model "$DATA/tiny.gguf" other.jsonl q.jsonl --max-new-tokens 2 --configs none -q -o p.h5
echo "status $?" >&2
head -c 3000 one.h5 >p.h5
profile --configs knorm:drop=0.5 -o p.h5

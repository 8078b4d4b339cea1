# Without --dtype a run goes on in the numbers that FILE's answers were computed in, and says so; a new FILE is in f32 on a
# CPU. --dtype fastest takes one of the two and says why.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
profile() {
	evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --max-new-tokens 2 --decode-times off "$@" 2>&1 | grep -oE 'computing in.*|in (f32|bf16)\>'
}
profile -o p.h5 --backend reference --configs knorm:drop=0.5 --dtype bf16
profile -o p.h5 --backend reference --configs knorm:drop=0.5,knorm:drop=0.9
profile -o n.h5 --configs knorm:drop=0.5
evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --max-new-tokens 2 --dtype fastest -o f.h5 2>&1 |
	grep -oE '(f32|bf16): (a product runs at|no fast products)' | sed 's/.*:.*/which, and why/'
evp-show --json f.h5 | grep -oE '"dtype":"(f32|bf16)"' | sed 's/bf16/f32/'

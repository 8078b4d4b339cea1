# --dtype auto goes on in the numbers that FILE's answers were computed in, whatever is faster here; and where FILE holds
# nothing it takes one of the two and says so.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
profile() {
	evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" -q --max-new-tokens 2 "$@"
}
profile -o p.h5 --configs knorm:drop=0.5 --dtype f32
profile -o p.h5 --configs knorm:drop=0.5,knorm:drop=0.9 --dtype auto
evp-show --json p.h5 | grep -o '"dtype":"[^"]*"\|"n_configs":[0-9]*'
profile -o n.h5 --configs knorm:drop=0.5 --dtype auto
evp-show --json n.h5 | grep -oE '"dtype":"(f32|bf16)"' | sed 's/bf16/f32/'

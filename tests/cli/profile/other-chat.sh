# Answers to prompts of another chat template do not go into a profile that has some already; the same template, from a file
# or not, goes on. A profile of before, which does not say, goes on too.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
profile() {
	evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" -q --max-new-tokens 2 -o p.h5 "$@"
	echo "status $?"
}
printf '<a>{content}<b>' >one
printf '<a>{content}<c>' >other
profile --configs knorm:drop=0.5 --chat-template one
profile --configs knorm:drop=0.9 --chat-template other
profile --configs knorm:drop=0.9
profile --configs knorm:drop=0.9 --chat-template one
evp-show --json p.h5 | grep -o '"n_configs":[0-9]*'
/usr/bin/python3 -c 'import h5py; f = h5py.File("p.h5", "a"); del f.attrs["chat_digest"]'
profile --configs knorm:drop=0.7 --chat-template one

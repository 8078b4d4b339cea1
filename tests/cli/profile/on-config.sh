# How long the work would take on a GPU, with config.json and tokenizer.json alone; the GPU's figures may be given.
mkdir m && cp "$DATA"/tiny/config.json "$DATA"/tiny/tokenizer.json m/
printf '{"id":"a","text":"%s","ask":" {question}"}\n' "$(seq -s ' ' 40)" >c.jsonl
printf '{"id":"q","context":"a","split":"train","text":"Who jumps?"}\n' >q.jsonl
on() { evp-profile c.jsonl q.jsonl --model "$@" --configs keydiff:drop=0.5 --dry-run 2>&1; echo "status $?"; }
on m --on H100
on m/config.json --on tflops=989,memory=80G,bandwidth=3.35T,10x4k | tail -n 2
on m

# Times that were measured on the serving GPU replace those of the profile; what they lack is refused, what is beyond them
# is said.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
evp-profile c.jsonl q.jsonl --model synthetic:tiny --configs kivi:bits=4 --max-new-tokens 2 -q -o p.h5 || exit
n=$(evp-show --json p.h5 | sed 's/.*"contexts":\[.*"n_tokens":\([0-9]*\).*/\1/')
write_times() { printf '{"evp":"times","version":1,"name":"mine","prefill":[{"n_tokens":%s,"seconds":2}],"question":[{"n_tokens":1,"seconds":0.5}]%s}\n' "$@"; }
score() { evp-score p.h5 --embedder "$DATA/minibert" -o t.h5 "$@"; }
rates=',"decompress":[{"config":"kivi","bytes_per_s":1e6}]'
write_times "$n" "$rates" >all.json
write_times "$((n / 2))" "$rates" >short.json
write_times "$n" "" >less.json
score --times all.json 2>&1 | grep times
evp-show --json t.h5 | grep -o '"prefill_s":[^,]*\|"prefill_spread":[^,]*\|"question_s":[^,]*'
evp-show --json p.h5 | grep -o '"prefill_spread":[0-9]\|"question_spread":[0-9]' | sed 's/[0-9]*$/is known/'
score --times short.json 2>&1 | grep warning
score --times less.json --quiet 2>\&1
echo "status $?"
score --times all.json --gpu H100 --quiet 2>\&1
echo "status $?"
score --times c.jsonl --quiet 2>\&1
echo "status $?"
evp-show all.json

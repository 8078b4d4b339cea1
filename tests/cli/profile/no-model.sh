# A model that is not there is reported, and no file is made.
printf '{"id":"a","text":"One."}\n{"id":"b","text":"Two."}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What?"}\n{"id":"q2","context":"%s","split":"test","text":"Who?"}\n' b >q.jsonl
evp-profile c.jsonl q.jsonl --model nowhere.gguf -o p.h5
status=$?
[ -e p.h5 ] || [ -e p.h5.d ] && echo "something was made"
exit $status

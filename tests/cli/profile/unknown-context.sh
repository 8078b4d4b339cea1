# A question about an unknown context is left out, and said; the others are asked.
printf '{"id":"a","text":"One."}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What?"}\n{"id":"q2","context":"c","split":"test","text":"Who?"}\n' >q.jsonl
evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs none --max-new-tokens 2 -q -o p.h5
status=$?
evp-show p.h5 | grep '^  t[a-z]* questions'
exit $status

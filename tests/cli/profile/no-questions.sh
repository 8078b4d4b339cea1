# A context without questions is refused.
printf '{"id":"a","text":"One."}\n{"id":"b","text":"Two."}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What?"}\n{"id":"q2","context":"%s","split":"test","text":"Who?"}\n' a >q.jsonl
evp-profile c.jsonl q.jsonl -o p.h5

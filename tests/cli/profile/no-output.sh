# --output is required.
printf '{"id":"a","text":"One."}\n{"id":"b","text":"Two."}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What?"}\n{"id":"q2","context":"%s","split":"test","text":"Who?"}\n' b >q.jsonl
evp-profile c.jsonl q.jsonl

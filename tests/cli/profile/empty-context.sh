# A context with an empty text is refused.
printf '{"id":"a","text":""}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What?"}\n' >q.jsonl
evp-profile c.jsonl q.jsonl -o p.h5

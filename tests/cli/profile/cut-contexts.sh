# Contexts without their end line are refused.
printf '{"evp":"contexts","version":1,"tool":"t","args":[],"from":[]}\n{"id":"a","text":"One."}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What?"}\n' >q.jsonl
evp-profile c.jsonl q.jsonl -o p.h5

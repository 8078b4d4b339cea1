# the chain of tools that made a file
printf '{"evp":"questions","version":1,"tool":"evp-qgen","args":["--seed","1"],"from":[{"evp":"contexts","version":1,"tool":"evp-import","args":["a.txt"],"from":[]}]}\n{"id":"q","context":"a","split":"test","text":"?","origin":"api"}\n{"end":true,"rows":1}\n' >questions.jsonl
evp-show --lineage questions.jsonl

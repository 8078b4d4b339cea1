# Tiers of one pool share its capacity, and a tier holds only what it may; --verify sees it when they do not.
. "$TOP/tests/cli/plan/edit.inc"
cp "$DATA/table.h5" .
tier='"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":0.001'
cat >tiers.json <<END
{"evp":"tiers","version":1,"tiers":[
  {"name":"a","kind":"file","uri":"/a",$tier,"pool":"disk","capacity_bytes":300000,"configs":["none"]},
  {"name":"b","kind":"file","uri":"/b",$tier,"pool":"disk","capacity_bytes":300000,"configs":["keydiff"]}]}
END
evp-plan table.h5 --tiers tiers.json --alpha 2 -o m.jsonl 2>&1 | sed -n '/^evp-plan: tier/p;/no plan/p'
grep -o '"config":"[^"]*","tier":"[^"]*"' m.jsonl
evp-plan -q table.h5 --verify m.jsonl && echo whole
try 's/"capacity_bytes":300000/"capacity_bytes":200000/g'
try 's/"configs":\["keydiff"\]/"configs":["snapkv"]/'
try 's/"prices":\[\([^,]*\),[^]]*\]/"prices":[\1,0]/'
try 's/,"capacity_bytes":300000/,"capacity_bytes":300001/'

# What evp-gain refuses, and what it leaves out: each is one sentence.
try() { evp-gain "$@" 2>&1 | grep -v '^evp-gain: \(assumed\|not counted\|which\|next\)' | sed "s|$PWD|.|g"; }
ok="--model synthetic:tiny --gpu a10 --dram 1G"
echo '{"prompt":"a question","model":"m"}' >one
try one --gpu H100
try one --model synthetic:tiny
try one --model synthetic:tiny --gpu H1
try one --model nowhere.gguf --gpu H100
try one --model synthetic:none --gpu H100
try one $ok --dataset n
try one $ok --dataset ,
try $ok
try nowhere $ok
try . $ok
: >empty
try empty $ok
echo '{"status":200}' >none
try none $ok
echo '10.0.0.1 - - [22/Nov/2026:05:58:00 +0000] "POST /v1/completions HTTP/1.1" 200 99 "-" "curl"' >web
try web $ok
trace() { printf '{"timestamp":%s,"input_length":%s,"hash_ids":%s}\n' "$@"; }
trace 0 600 '[1,2]' >trace
try trace one $ok
{ trace 0 1100 '[1]'; trace 0 0 '[]'; trace 0 512.5 '[1,2]'; trace 0 '"a"' '[1]'; trace 0 9 '["a"]'; } >bad
try bad $ok
try trace bad $ok | tail -n 1
try trace bad $ok --partial | head -n 3
echo '{"timestamp":0,"input_length":200,"block_size":64,"hash_ids":[1,2,3]}' >small
try trace small $ok
evp-gain -q small $ok 2>&1 | grep -E 'tokens  |distinct'
evp-import --requests trace -o out 2>&1
{ cat one; echo '{"prompt":"cut'; } >damaged
evp-gain -q damaged $ok 2>error
echo "status $?"
tail -n 1 error
evp-gain -q damaged $ok --partial >table 2>error
echo "status $?"
cat error
grep requests table
gzip -c one | head -c 30 >cut.gz
try cut.gz $ok

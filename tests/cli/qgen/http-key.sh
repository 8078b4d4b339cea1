# The key reaches the service, from a file or the environment, and nothing else: no output, message, part or lineage.
. "$TOP/tests/cli/qgen/mock"
key=sk-verysecret-0123456789
echo $key >key
ask ok --key-file key -o one.jsonl -v -v 2>err1
OPENAI_API_KEY=$key ask ok -v -v >two.jsonl 2>err2
ask denied-c --key-file key --concurrency 1 -o three.jsonl -v -v 2>err3
ask denied --key-file key 2>err4
grep -c "Bearer $key" "$log" >n
[ "$(cat n)" -ge 10 ] || echo "the key reached the service $(cat n) times"
ls
grep -l verysecret one.jsonl two.jsonl three.jsonl.part err*
grep -o 'no such key.*' err3
printf 'two\nlines' >bad
ask ok --key-file bad 2>/dev/null
echo $?
ask ok --key-file absent 2>/dev/null
echo $?

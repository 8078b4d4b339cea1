# A service that never answers well: status 4 and no file of questions, whether it is absent, broken, talks nonsense or
# too much. Nonsense is paid for, so FILE.part stays.
. "$TOP/tests/cli/qgen/mock"
for s in broken nonsense vast; do
	ask $s --retries 1 -o out.jsonl 2>err
	echo "$s: $? $(grep -c "^/$s/" "$log") $(tail -n 1 err | sed 's/1:[0-9]*/1:PORT/')"
done
base=http://127.0.0.1:1
ask ok --retries 0 2>/dev/null
echo "absent: $?"
ls

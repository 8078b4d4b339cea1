# A context that the service refuses is said and left out; the others go on. A second run asks about that one only,
# and then FILE.part is gone.
. "$TOP/tests/cli/qgen/mock"
ask unknown-c --concurrency 1 -o out.jsonl
status=$?
grep -o '"id":"[^"]*"' out.jsonl
ls
: >"$log"
ask ok -o out.jsonl && wc -l <"$log" && ask ok | rows >want && rows out.jsonl | cmp - want
[ -e out.jsonl.part ] && echo "a part is left"
exit $status

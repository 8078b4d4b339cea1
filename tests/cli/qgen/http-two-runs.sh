# Two runs with one -o: the second is refused at once, and the first writes its file whole.
. "$TOP/tests/cli/qgen/mock"
ask ok | rows >want || exit 9
ask slow --concurrency 1 -o q.jsonl &
first=$!
while ! [ -s q.jsonl.part ]; do sleep 0.02; done
ask ok -o q.jsonl 2>err
echo "status $?"
cat err >&2
wait $first || echo "the first ends with $?"
rows q.jsonl | cmp - want
ls

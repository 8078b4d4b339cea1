# Killed in the middle, a run goes on from what was answered; once done, a further run asks nothing. A torn line does
# not count. An answer counts for the same text only.
. "$TOP/tests/cli/qgen/mock"
ask ok | rows >want
: >"$log"
evp-qgen -q c.jsonl --api-base "$base/slow/v1" --model m --per-context 2 --concurrency 1 -o out.jsonl &
run=$!
while [ "$(cat out.jsonl.part 2>/dev/null | grep -c context)" -lt 2 ]; do sleep 0.02; done
kill -9 $run
wait $run 2>/dev/null
sleep 0.4 # the service logs the request that was in flight
[ -e out.jsonl ] && echo "a file half done"
printf '{"context":"c","dig' >>out.jsonl.part
known=$(grep -c '"questions"' out.jsonl.part)
: >"$log"
ask ok -o out.jsonl
[ "$(grep -c . "$log")" = $((4 - known)) ] || echo "$known of 4 were known, $(grep -c . "$log") asked"
rows out.jsonl | cmp - want
: >"$log"
ask ok -o out.jsonl
rows out.jsonl | cmp - want
sed -i 's/context b,/context B,/' c.jsonl
ask ok -o out.jsonl
cut -d' ' -f2 "$log"
ls

# A long context is asked about section by section, and each section's reply is kept: killed in the middle, a run goes on
# with the sections that are missing, here at other endpoints.
. "$TOP/tests/cli/qgen/mock"
python3 - >c.jsonl <<'END'
import json
print(json.dumps({"id": "long", "text": " ".join(f"word{i}" for i in range(3000))}))
END
each=12
ask ok --window 1536 | rows >want
sections=$(grep -c . "$log")
evp-qgen -q c.jsonl --api-base "$base/slow/v1" --model m --per-context $each --window 1536 --concurrency 1 -o out.jsonl &
run=$!
while [ "$(cat out.jsonl.part 2>/dev/null | grep -c '"questions"')" -lt 3 ]; do sleep 0.02; done
kill -9 $run
wait $run 2>/dev/null
sleep 0.4 # the service logs the request that was in flight
known=$(grep -c '"questions"' out.jsonl.part)
: >"$log"
ask ok --window 1536 --api-base "$base/wrapped/v1" -o out.jsonl
[ "$(grep -c . "$log")" = $((sections - known)) ] || echo "$known of $sections were known, $(grep -c . "$log") asked"
rows out.jsonl | cmp - want
ls

# A batch asks what HTTP would have asked, and its replies, in any order, make the same questions of the same tokens. What
# fails or is missing is said, and the next batch has only that.
. "$TOP/tests/cli/qgen/mock"
python3 - >>c.jsonl <<'END'
import json
print(json.dumps({"id": "long", "text": " ".join(f"word{i}" for i in range(3000))}))
END
batch() { evp-qgen -q c.jsonl --model m --per-context 6 --window 2048 "$@"; }
each=6 ask ok --window 2048 --summary s1.json | rows >want
batch --batch-out requests
wc -l <requests
python3 "$TOP/tests/cli/qgen/batch.py" "$base/ok/v1" requests >results || exit 9
batch --batch-in results --summary s2.json | rows | cmp - want
python3 -c '
import json
for name in "s1.json", "s2.json":
    r = json.load(open(name))["result"]
    print(r["prompt_tokens"], r["completion_tokens"])'
echo "-- one reply is an error of vLLM, one of OpenAI, one is nonsense, one is missing"
python3 - <<'END'
import json
rows = [json.loads(line) for line in open("results")]
rows[0]["response"] = {"status_code": 400, "request_id": "r", "body": None}
rows[0]["error"] = {"error": {"message": "the prompt is too long", "type": "BadRequestError", "code": 400}}
rows[-1]["response"], rows[-1]["error"] = None, {"code": "batch_expired", "message": "it took more than 24 hours"}
rows[-2]["response"]["body"]["choices"][0]["message"]["content"] = "I cannot do that."
del rows[-3]
open("some", "w").writelines(json.dumps(row) + "\n" for row in rows)
END
batch --batch-in some -o q.jsonl 2>&1
echo "status $?"
batch --batch-out requests2 -o q.jsonl
echo "status $?"
sort requests >all
sort requests2 | comm -13 all - | wc -l
wc -l <requests2
python3 "$TOP/tests/cli/qgen/batch.py" "$base/ok/v1" requests2 >results2 || exit 9
cat results2 some >both # what is known is passed over
batch --batch-in both -o q.jsonl --summary s.json 2>&1
echo "status $?"
grep -o '"cost_in_all":[^,}]*' s.json
rows q.jsonl | cmp - want
ls
echo "-- a text has changed since"
sed -i 's/context b,/context B,/' c.jsonl
batch --batch-in results 2>&1 >/dev/null
echo "status $?"

# Two contexts whose topics change are found, and no other; once they are profiled again, nothing is asked about them.
. "$TOP/tests/cli/drift/drift.inc"
drift before.jsonl -o m0.jsonl --state s.jsonl && bare m0.jsonl # no new questions: nothing runs
ls -d m0.jsonl.d 2>/dev/null
drift night1.jsonl -o m1.jsonl --state s.jsonl --summary one.json 2>&1 && bare m1.jsonl
drift night2.jsonl -o m2.jsonl --state s.jsonl --summary two.json 2>&1 | sed 's/promised.*//'; bare m2.jsonl | sed 's/"questions".*//'
ls -d *.d 2>/dev/null
/usr/bin/python3 - <<'END'
import json
for night in "one", "two":
    r = json.load(open(f"{night}.json"))["result"]
    print(night, r["compressed"], r["contexts"], r["moved"], "answers" if r["answers"] < r["answers_all"] else r)
rows = [r for r in map(json.loads, open("m2.jsonl")) if "context" in r]
for r in rows:
    assert r["configs"] == ["knorm:drop=0.5", "knorm:drop=0.9"], r
    assert len(r["questions"]) == 16 and not set(r["questions"]) & {q["id"] for q in map(json.loads, open("before.jsonl"))}
    assert set(r["questions"]) >= {q["id"] for q in map(json.loads, open("night2.jsonl")) if q["asked_at"] >= 300 and q["context"] == r["context"]}
END
echo again
drift night2.jsonl -o again.jsonl --state s.jsonl 2>&1 # the same list, and nothing is asked
bare m2.jsonl >m2.rows && bare again.jsonl | cmp - m2.rows
evp-show s.jsonl | cut -c 1-45
echo "profiled again"
profile night2.jsonl --cells m2.jsonl -o p.h5 && score p.h5 table.h5 && evp-plan table.h5 --tiers tiers.json --alpha 0 -q >m.jsonl || exit
# What the table names, but has no answer to, is still new.
drift night2.jsonl -o m3.jsonl --state s.jsonl --summary three.json 2>&1; bare m3.jsonl
grep -o '"contexts":[0-9]*' three.json
profile night2.jsonl --cells m3.jsonl -o p.h5; echo $?
echo "a context that the table lacks"
grep -v '"c5"' c.jsonl >five.jsonl && grep -v '"c5"' before.jsonl >asked.jsonl
evp-profile five.jsonl asked.jsonl $model --max-new-tokens 8 -q --configs knorm:drop=0.5,knorm:drop=0.9 -o five.h5 && score five.h5 table.h5
drift night1.jsonl -o lacks.jsonl 2>&1

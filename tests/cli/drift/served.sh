# Answers that a server gave: only those of what is placed count; the uncompressed cache's come from the table or from the log.
# Nothing is profiled. Lines that are no answers are counted.
. "$TOP/tests/cli/drift/drift.inc"
"$BUILD/tests/tools/answers" every-table.h5 >answers
/usr/bin/python3 - <<'END'
import gzip, json
text = {q["id"]: q["text"] for q in map(json.loads, open("every.jsonl"))}
given = {(r["question"], r["config"]): r["answer"] for r in map(json.loads, open("answers"))}
at = {q["id"]: q["asked_at"] for q in map(json.loads, open("night2.jsonl"))}
def row(q, config, **more):
    return json.dumps(dict(context=q.split("/")[0], question=text[q], config=config, answer=given[q, config], **more)) + "\n"
new = [q for q in at if at[q] >= 300]
with open("one.jsonl", "w") as f:  # what the table has, and a little of everything else
    for q in at:
        if at[q] < 200:
            f.write(row(q, "knorm:drop=0.9", time=at[q]))
    f.write("a line of something else\n[]\n{}\n" + '{"context":"c0","question":"Who?","config":"none","answer":1}\n')
    f.write('{"context":"c0","question":"Who?","config":"knorm:drop=0.5","answer":"1"}\n')
    f.write('{"context":"stranger","question":"Who?","config":"none","answer":"1"}\n')
    f.write('{"context":"c3","question":"Who asked that?","config":"knorm:drop=0.9","answer":"1"}')
with gzip.open("two.jsonl.gz", "wt") as f:
    for q in new:
        f.write(row(q, "knorm:drop=0.9", time=at[q], user="u"))
        f.write(row(q, "none", time=at[q]))
END
served() { evp-drift table.h5 m.jsonl --questions night2.jsonl --embedder "$DATA/minibert" "$@" 2>&1 | grep -v -e computing -e 'next:' | sed 's/promised.*over/over/'; }
served --served one.jsonl -o l.jsonl --state s.jsonl; bare l.jsonl
served --served one.jsonl --served two.jsonl.gz -o l.jsonl --state s.jsonl; bare l.jsonl | sed 's/"questions".*//'
echo "no new question"
evp-drift table.h5 m.jsonl --questions before.jsonl --embedder "$DATA/minibert" --served two.jsonl.gz -q -o l.jsonl 2>&1 | sed 's/promised.*over/over/'; bare l.jsonl
ls -d *.d 2>/dev/null
echo "damaged"
head -c 300 two.jsonl.gz >cut.gz
printf '' >empty
for log in cut.gz empty no-such-log .; do
	evp-drift table.h5 m.jsonl --questions night2.jsonl --embedder "$DATA/minibert" --served $log -q -o l.jsonl 2>&1; echo $?
done

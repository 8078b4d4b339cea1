# Three nights of vLLM's log around New Year, rotated as logrotate does, newest file first, into one profile: questions
# keep their ids and halves, every answer is computed once, and the days are counted in the right order.
command -v python3 >/dev/null || skip "python3 is not installed"
printf 'User: {content}\nAnswer:' >chat
model="--model synthetic:tiny --chat-template $PWD/chat"
cat >day.py <<'END'
"""day.py DAY - the lines of one day about three documents; every day has other questions, and some of the day before."""
import sys
day = int(sys.argv[1])
for d, name in enumerate(("pump", "lamp", "door")):
    text = f"The {name} of the house.\n" + " ".join(f"{name}{i}" for i in range(200)) + "\n\n"
    for i, q in enumerate([(day + 2) % 3] * 3 + list(range(3 * day, 3 * day + 6))):
        prompt = f"User: {text}What is number {q} of the {name}?\nAnswer:"
        print(f"(APIServer pid=1) DEBUG {('12-30', '12-31', '01-01')[day]} {d + 6:02}:00:{i:02} [logger.py:49] "
              f"Request cmpl-{i} details: prompt: {prompt!r}, prompt_token_ids: [1], prompt_embeds shape: None.")
END
for day in 0 1 2; do
	[ ! -e requests.log.1 ] || { gzip requests.log.1 && mv requests.log.1.gz requests.log.2.gz; }
	[ ! -e requests.log ] || mv requests.log requests.log.1
	python3 day.py $day >requests.log
	touch -d "@$((1767139199 + day * 86400))" requests.log # the last second of 2025-12-30, -31 and 2026-01-01, UTC
	evp-import --requests requests.log* --half-life 24 --per-context 6 -o mine 2>said || cat said
	grep -o '[0-9]* requests in .*' said
	evp-profile mine/contexts.jsonl mine/questions.jsonl $model --max-new-tokens 2 -c none,knorm:drop=0.5 -o profile.h5 2>said || cat said
	python3 - <<'END'
import json, os, re
rows = {n: [json.loads(l) for l in open(f"mine/{n}.jsonl")][1:-1] for n in ("contexts", "questions", "access")}
before = json.load(open("seen")) if os.path.exists("seen") else {}
now = {q["id"]: [q["context"], q["text"], q["split"]] for q in rows["questions"]}
again = set(now) & set(before)
answers = int(re.search(r"questions: (\d+) answers", open("said").read()).group(1))
print(len(rows["contexts"]), "contexts,", len(now), "questions,", len(again), "again,", answers, "answers,",
      "as many as needed" if answers == 2 * len(set(now) - set(before)) else "not 2 for each new question",
      "" if all(now[i] == before[i] for i in again) else "a question changed",
      sorted(round(a["count"], 3) for a in rows["access"]))
texts = {**before, **now}
print(len({tuple(t[:2]) for t in texts.values()}) == len(texts))
json.dump(texts, open("seen", "w"))
END
done
evp-profile mine/contexts.jsonl mine/questions.jsonl $model --max-new-tokens 2 -c none,knorm:drop=0.5 -o profile.h5 2>&1 | grep -o 'nothing.*'

"""requests-newest.py make SEED | check DIR... - a log whose requests came on many days, in any order, some without a time;
and what evp-import must keep of it, counted in Python: of each document the questions of the last days."""
import json, random, sys
from pathlib import Path

DAY, LAST = 86400, 1.7e9
PER_CONTEXT, FORGET = 5, 9


def requests():
    """(document, question, time or None); the last one is at LAST"""
    r = random.Random(0)
    rows = [(6, 0, LAST), (6, 1, LAST - 3 * DAY)]  # too few questions to choose among
    for document in range(6):
        newest = [0, 0.5, 8.9, 9.1, 20, 40][document]
        for question in range(16):
            for again in range(r.randrange(1, 4)):
                ago = newest if question == again == 0 else newest + r.choice([0, 0.2, 1, 2.5, 3, 30]) + r.random() / 10
                rows.append((document, question, LAST - ago * DAY))
    rows += [(5, 3, None), (1, 7, None), (2, 2, 9e9)]  # 9e9 is in the future: unknown
    return rows


def make(seed):
    rows = requests()
    random.Random(seed).shuffle(rows)
    for document, question, at in rows:
        text = "".join(f"d{document}w{i} " for i in range(200))
        row = {"prompt": f"{text}\n\nQuestion: what is {question}?"} | ({} if at is None else {"timestamp": at})
        print(json.dumps(row))


def check(folder, forget):
    read = lambda name: [json.loads(line) for line in (Path(folder) / f"{name}.jsonl").read_text().splitlines()[1:-1]]
    name = {c["id"]: int(c["text"].split("w")[0][1:]) for c in read("contexts")}
    asked = {}  # (document, question) -> time of the last request; None is newer than any time
    for document, question, at in requests():
        key = document, question
        at = None if at == 9e9 else at
        asked[key] = None if at is None or asked.get(key, 0) is None else max(asked.get(key, 0), at)
    days = {k: 0 if at is None else (LAST - at) // DAY for k, at in asked.items()}
    seconds = lambda d: min(0 if at is None else LAST - at for k, at in asked.items() if k[0] == d)
    want = [d for d in range(7) if not forget or seconds(d) <= FORGET * DAY]
    assert sorted(name.values()) == want, (sorted(name.values()), want)
    kept = {}
    for q in read("questions"):
        key = name[q["context"]], int(q["text"].rstrip("?").split()[-1])
        assert q.get("asked_at") == asked[key], (q, asked[key])
        kept[key] = days[key]
    for document in want:
        have = sorted(d for k, d in kept.items() if k[0] == document)
        best = sorted(d for k, d in days.items() if k[0] == document)[:PER_CONTEXT]
        assert have == best, (document, have, best)
    return set(kept)


if sys.argv[1] == "make":
    make(int(sys.argv[2]))
else:
    kept = [check(folder, "forget" in folder) for folder in sys.argv[2:]]
    print([k == kept[0] for k in kept])

# Every log of docs/requests.md is read: one context and its questions come out of each.
skip_without_python() { command -v python3 >/dev/null || skip "python3 is not installed"; }
skip_without_python
cat >try.py <<'END'
import json, os, re, subprocess, sys
page = open(os.path.join(os.environ["TOP"], "docs/requests.md")).read()
text = " ".join(f"word{i}" for i in range(400))
blocks = re.findall(r"^```(?:json|text) log\n(.*?)\n```$", page, re.M | re.S)
for n, block in enumerate(blocks):
    assert "THE TEXT" in block and "AND A QUESTION" in block and "\n" not in block
    with open("log", "w") as f:
        for q in ("Who is it?", "What was that?", "When will it be?"):
            f.write(block.replace("THE TEXT", text).replace("AND A QUESTION", q) + "\n")
    subprocess.run(["evp-import", "-q", "--requests", "log", "-o", "out"], check=True)
    rows = {name: [json.loads(l) for l in open(f"out/{name}.jsonl")][1:-1] for name in ("contexts", "questions", "access")}
    c, = rows["contexts"]
    roles = [t["role"] for t in c["turns"]]
    print(n, roles, c["dataset"], repr(c["text"][-12:]), repr(c["ask"]), rows["access"][0]["count"],
          sorted(q["text"] for q in rows["questions"]), {q["origin"] for q in rows["questions"]})
END
python3 try.py

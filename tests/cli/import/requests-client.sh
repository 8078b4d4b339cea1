# What a client of an OpenAI-compatible service sends is logged by the client and imported: the context is what its
# prompts have in common, and the ids of context and question are those of the prompt that the service would tokenise.
command -v python3 >/dev/null || skip "python3 is not installed"
. "$TOP/tests/cli/qgen/mock"
cat >client.py <<'END'
import json, sys, time, urllib.request
base, n = sys.argv[1], 0
system = {"role": "system", "content": "You answer from the manual. " + " ".join(f"rule{i}" for i in range(200))}
manual = "The manual.\n" + " ".join(f"step{i}" for i in range(400)) + "\n\n"
with open("log.jsonl", "w") as log:
    for question in "How does it start?", "Why is the lamp red?", "When to call for help?", "What is in the box?":
        body = {"model": "m", "messages": [system, {"role": "user", "content": manual + question}], "max_tokens": 16}
        data = json.dumps(body).encode()
        request = urllib.request.Request(base + "/chat/completions", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as reply:
            status = reply.status
        log.write(json.dumps({"time": time.time(), "status": status, "request": body}) + "\n")
END
python3 client.py "$base/ok/v1" || exit 1
evp-import -q --requests log.jsonl --half-life 1 -o mine
python3 - <<'END'
import json
rows = {n: [json.loads(l) for l in open(f"mine/{n}.jsonl")][1:-1] for n in ("contexts", "questions", "access")}
c, = rows["contexts"]
print(c["turns"], repr(c["text"][-20:]), repr(c["ask"]))
print(sorted(q["text"] for q in rows["questions"]), 3.99 < rows["access"][0]["count"] <= 4)
END

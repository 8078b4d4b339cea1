# Conversations that grow, about two documents: each turn's prompt begins with the one before. As bodies and as vLLM's
# prompts they give the same contexts, uses and questions; a special token or an earlier round is no question. A context of
# one conversation alone comes with --min-uses 1.
command -v python3 >/dev/null || skip "python3 is not installed"
cat >make.py <<'END'
import json
def words(name, n):
    return " ".join(f"{name}{i}" for i in range(n))
with open("bodies", "w") as bodies, open("vllm", "w") as vllm:
    for talk in range(6):
        messages = [{"role": "system", "content": "You are helpful."},
                    {"role": "user", "content": words("ab"[talk % 2], 300) + f"\n\nFirst question {talk}?"}]
        for turn in range(4):
            bodies.write(json.dumps({"messages": messages}) + "\n")
            prompt = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages) + "<|im_start|>assistant\n"
            vllm.write(f"DEBUG 11-22 05:58:00 [logger.py:49] Request {turn} details: prompt: {prompt!r}, prompt_token_ids: [1].\n")
            messages = messages + [{"role": "assistant", "content": words(f"answer{turn}to{talk}w", 30)},
                                   {"role": "user", "content": f"And then, {turn} of {talk}?"}]
END
python3 make.py
for uses in 1 2; do
	for log in bodies vllm; do
		evp-import -q --requests $log --min-uses $uses -o out 2>said
		python3 - <<'END' >$log.txt
import json
rows = {n: [json.loads(l) for l in open(f"out/{n}.jsonl")][1:-1] for n in ("contexts", "questions", "access")}
for c, a in zip(rows["contexts"], rows["access"]):
    print(a["count"], sorted(q["text"] for q in rows["questions"] if q["context"] == c["id"]))
END
	done
	cat bodies.txt
	cmp bodies.txt vllm.txt
done

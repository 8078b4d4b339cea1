# Bodies of every API and the fields a prompt depends on: used, left out by name, or named when they are not known. Each log
# has six requests about one document; contexts, uses and messages are said.
command -v python3 >/dev/null || skip "python3 is not installed"
cat >make.py <<'END2'
import json, sys
text = "The manual.\n" + " ".join(f"step{i}" for i in range(400)) + "\n\n"
asked = [text + q for q in ("Who?", "What is it?", "Where?", "When then?", "Why so?", "How?")]
def chat(q, **more):
    return {"model": "m", "messages": [{"role": "user", "content": q}]} | more
def name(n, rows):
    with open(n, "w") as f:
        f.writelines((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows)
def split(q):
    return text, q[len(text):]
block = lambda t: [{"type": "text", "text": t}]
short = [split(q)[1] for q in asked]
name("anthropic", [{"model": "m", "max_tokens": 5, "system": block(text[:9]) + block(text[9:]), "thinking": {"type": "enabled"},
                    "messages": [{"role": "user", "content": block(q)}]} for q in short])
name("ollama", [{"model": "m", "system": text, "prompt": q, "keep_alive": 5, "options": {"num_ctx": 9}} for q in short])
name("ollama-path", [{"path": "/api/generate", "body": {"model": "m", "prompt": q}} for q in asked])
name("ollama-raw", [{"model": "m", "prompt": q, "raw": True, "options": {"num_ctx": 9}} for q in asked])
name("responses", [{"model": "m", "instructions": text, "input": q} for q in short[:3]] +
     [{"model": "m", "instructions": text, "store": False, "input": [{"role": "user", "content": [{"type": "input_text", "text": q}]}]} for q in short[3:]])
name("responses-path", [{"url": "/v1/responses", "body": {"model": "m", "input": q}} for q in asked])
name("gemini", [{"systemInstruction": {"parts": [{"text": text}]}, "contents": [{"role": "user", "parts": [{"text": q}]}], "generationConfig": {"topK": 1}} for q in short])
name("tgi", [{"inputs": q, "parameters": {"max_new_tokens": 5}} for q in asked])
name("llama", [{"prompt": {"prompt_string": q}, "n_predict": 5, "cache_prompt": True} for q in asked])
name("sglang", [{"text": [q], "sampling_params": {}} for q in asked])
name("litellm", [{"call_type": "acompletion", "model": "m", "status": "success", "messages": "{}", "zz": 1, "proxy_server_request": chat(q)} for q in asked])
name("salt", [chat(q, cache_salt="secret-one" if i < 4 else "secret-two") for i, q in enumerate(asked)])
name("unknown", [chat(q, frobnicate=1, **{"a b": 2}, none=None, chat_template_kwargs={"fancy": True, "enable_thinking": False}) for q in asked])
name("many", [chat(q, **{f"field{i}{'x' * i}": 1 for i in range(40)}) for q in asked])
name("status", [{"status": s, "request_body": json.dumps(chat(q))} for s, q in zip(("200", "429", "503", 201, 499, 200), asked)])
name("failures", [{"status": "failure", "body": chat(asked[0])}, {"error": {"code": 5}, "body": chat(asked[1])}, {"error": "", "body": chat(asked[2])},
                  {"error": None, "body": chat(asked[3])}, {"response": {"status_code": 400}, "body": chat(asked[4])}, {"status": "completed", "body": chat(asked[5])}])
name("status-flawed", [{"status": 200 if i % 2 else 500, "body": chat(q, **{} if i % 2 else {"tools": [{}]})} for i, q in enumerate(asked)])
flawed = {"mcp": {"mcp_servers": [{}]}, "image": {"images": ["a"]}, "ids": {"context": [1]}, "template": {"template": "x"}, "docs": {"documents": [{}]},
          "inside": {"chat_template_kwargs": {"documents": [{}]}}, "before": {"previous_response_id": "r"}, "prefill": {"continue_final_message": True},
          "bare": {"add_generation_prompt": False}, "lora": {"lora_path": "a"}, "key": {"extra_key": "k"}, "none": {"tools": [], "images": None, "lora_path": ""}}
for n, more in flawed.items():
    name("flaw-" + n, [chat(q, **more) for q in asked])
cut = ["... (litellm_truncated skipped 5 chars) ...x", "<Truncated in logs>", "[TRUNCATED] x", "... (1234 chars)", "…[truncated 5 bytes]", "...[truncated]",
       "... (12,345 more characters)", " (truncated)", "... (all of it)", "...{5}"]
name("cut", [chat(asked[0] + c) for c in cut])
thoughts = [{"role": "user", "content": text}, {"role": "assistant", "content": "a", "reasoning_content": "mm"}]
name("thoughts", [{"messages": thoughts + [{"role": "user", "content": q}]} for q in short])
name("call", [{"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": [{"type": "tool_use", "name": "x", "input": {}}]},
                            {"role": "user", "content": [{"type": "tool_result", "content": q}]}]} for q in short])
call = [{"role": "user", "content": text}, {"type": "function_call", "name": "x", "arguments": "{}"}]
name("items", [{"instructions": "x", "input": call + [{"role": "user", "content": q}]} for q in short])
name("else", [{"instructions": "x", "input": [{"type": "item_reference", "id": "x"}, {"role": "user", "content": q}]} for q in asked])
name("not-asked", [{"model": "m", "input": q} for q in asked[:2]] + [{"model": "m", "input": asked[2], "voice": "v", "instructions": "low"}])
vllm = "Received request cmpl-{}: prompt: {!r}, params: SamplingParams(n=1), prompt_token_ids: None, lora_request: {}."
name("vllm-lora", [vllm.format(i, q, None if i % 2 else "LoRARequest(lora_name='sql', lora_int_id=1)") for i, q in enumerate(asked)])
name("vllm-says", [vllm.format(i, "lora_request: LoRARequest(" + q, None) for i, q in enumerate(asked)])
def paired(body, ident, prompt, ident2):
    return [f"DEBUG 02-13 11:33:00 [r.py:79] Request {ident} JSON body: {json.dumps(body)}",
            f"DEBUG 02-13 11:33:00 [r.py:49] Request {ident2} details: prompt: {prompt!r}, prompt_token_ids: None"]
tools = {"tools": [{"type": "function"}]}
rows = [paired(chat(q, **tools if i % 2 else {}), f"chatcmpl-{i}", "<s>" + q, f"chatcmpl-{i}") for i, q in enumerate(asked)]
name("pairs", [r for pair in rows for r in pair])
name("pairs-mixed", [r[0] for r in rows] + [r[1] for r in reversed(rows)])
name("pairs-order", [r for i, q in enumerate(asked) for r in paired(chat(q, **tools), "N/A", "<s>" + q, f"chatcmpl-{i}")])
name("pairs-old", [rows[1][0]] * 100 + [rows[1][1]] + [r[1] for r in rows] + [rows[0][0]])
name("pairs-text", [r for i, q in enumerate(asked) for r in paired({"model": "m", "prompt": q, "suffix": "x"}, f"cmpl-{i}", q, f"cmpl-{i}-0")])
event = lambda e, **obj: {"event": e, "rid": "1", "obj": obj}
name("sglang-pairs", [r for i, q in enumerate(asked) for r in (event("request.received.openai", **chat(q, **tools if i % 2 else {})),
                      event("request.received", text="<s>" + q, sampling_params={}), event("request.finished", text=q, input_ids=[1], sampling_params={}))])
END2
python3 make.py
for log in anthropic ollama ollama-path ollama-raw responses responses-path gemini tgi llama sglang litellm salt unknown many status status-flawed failures flaw-* cut thoughts call items \
	else not-asked vllm-lora vllm-says pairs pairs-mixed pairs-order pairs-old pairs-text sglang-pairs; do
	rm -rf out
	evp-import --requests $log --partial -o out 2>err
	echo "$log: status $?"
	grep -v 'next\|evp-plan takes\|of the contexts\|docs/requests.md shows' err
	[ ! -d out ] || python3 - <<'END2'
import json
rows = {n: [json.loads(l) for l in open(f"out/{n}.jsonl")][1:-1] for n in ("contexts", "access")}
print("  ", [[t["role"] for t in c["turns"]] for c in rows["contexts"]], [a["count"] for a in rows["access"]])
END2
done
echo "the salt is written nowhere"
evp-import --requests salt -o out 2>err && ! grep -q secret out/*.jsonl err

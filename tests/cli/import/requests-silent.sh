# Logs without prompts, in the shapes of vLLM, SGLang, LiteLLM, nginx and uvicorn: the answer is the setting that would log
# them. Prompts that were cut are noticed. A log beside them is read.
command -v python3 >/dev/null || skip "python3 is not installed"
try() { evp-import -q --requests "$@" -o out 2>&1; echo "status $?"; }
params='params: SamplingParams(n=1, temperature=0.7, max_tokens=100), lora_request: None.'
cat >vllm-info <<END
(APIServer pid=90458) INFO 02-13 11:33:33 [logger.py:49] Received request chatcmpl-a2: $params
(APIServer pid=90458) INFO:     10.80.23.18:51408 - "POST /v1/chat/completions HTTP/1.1" 200 OK
(APIServer pid=90458) INFO 02-13 11:33:39 [loggers.py:257] Engine 000: Avg prompt throughput: 0.8 tokens/s
END
head -1 vllm-info | sed 's/.*/{"log":"&\\n","stream":"stderr","time":"2026-02-13T11:33:33.1Z"}/' >vllm-docker
cat >vllm-ids <<END
(APIServer pid=1) DEBUG 02-13 11:33:33 [logger.py:49] Request chatcmpl-a2 details: prompt: None, prompt_token_ids: [1, 2], prompt_embeds shape: None.
(APIServer pid=1) INFO 02-13 11:33:33 [logger.py:53] Received request chatcmpl-a2: $params
END
cat >sglang-text <<END
[2026-02-13 11:33:33] Receive: obj=GenerateReqInput(rid='1', text='Say hello', input_ids=None, sampling_params={'max_new_tokens': 8})
[2026-02-13 11:33:33 TP0] Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00
[2026-02-13 11:33:34] Finish: obj=GenerateReqInput(rid='1'), out={'text': 'Hello'}
END
cat >sglang-1 <<END
[2026-02-13 11:33:33] {"timestamp": "2026-02-13T11:33:33.1", "event": "request.received", "rid": "1", "obj": {"rid": "1", "sampling_params": {}}}
END
python3 - <<'END' >sglang-2
import json
text = "word " * 800
for q in "abc":
    row = {"timestamp": "2026-02-13T11:33:33.1", "event": "request.received", "rid": q,
           "obj": {"text": text[:1024] + "..." + (text + q)[-1024:], "sampling_params": {}}}
    print("[2026-02-13 11:33:33] " + json.dumps(row))
END
cat >litellm <<END
{"request_id":"1","call_type":"acompletion","startTime":"2026-02-13 05:58:00.5","model":"m","messages":"{}","proxy_server_request":"{}"}
{"id":"2","call_type":"acompletion","startTime":1763790000.5,"model":"m","messages":[{"role":"user","content":"redacted-by-litellm"}]}
END
cat >nginx <<END
10.0.0.7 - - [13/Feb/2026:11:33:33 +0000] "POST /v1/chat/completions HTTP/1.1" 200 1234 "-" "python-requests/2.32"
END
cat >nginx-json <<END
{"time_iso8601":"2026-02-13T11:33:33+00:00","status":"200","request":"POST /v1/chat/completions HTTP/1.1"}
END
grep POST vllm-info | sed 's/(.*) //' >uvicorn
printf '# A page\n\nwith some text\n' >page.md
: >empty
for log in vllm-info vllm-docker vllm-ids sglang-text sglang-1 sglang-2 litellm nginx nginx-json uvicorn page.md empty; do
	try $log
done

echo "a log with prompts beside one without, and prompts that vLLM cut"
python3 - <<'END'
import json
def vllm(name, prompts):
    with open(name, "w") as f:
        for i, p in enumerate(prompts):
            f.write(f"DEBUG 02-13 11:33:{i:02} [logger.py:49] Request cmpl-{i} details: prompt: {p!r}, prompt_token_ids: [1], prompt_embeds shape: None.\n")
text = " ".join(f"word{i}" for i in range(400)) + "\n\n"
asked = [text + q for q in ("Who is it?", "What was that?", "When will it be?", "Who can say what the words mean?")]
vllm("whole", asked)
vllm("cut", [(q + p)[:2000] for p in asked for q in ("A", "BB", "CCC")] + ["short"])
with open("bodies", "w") as f: # vLLM 0.32: bodies, prompts and parameters of the same requests
    for i, p in enumerate(asked):
        body = {"messages": [{"role": "user", "content": p}], "model": "m"}
        f.write(f"DEBUG 02-13 11:33:{i:02} [request_logger.py:79] Request {i} JSON body: {json.dumps(body)}\n")
        f.write(f"DEBUG 02-13 11:33:{i:02} [request_logger.py:55] Request chatcmpl-{i} details: prompt: {'<s>[INST] ' + p!r}, prompt_token_ids: [1], prompt_embeds shape: None.\n")
with open("cut-bodies", "w") as f:
    for line in open("bodies"):
        if "JSON body" in line:
            f.write(line[:1500] + "\n")
with open("sglang", "w") as f: # body, ids, and prompt with answer of the same requests
    def put(event, **row):
        f.write("[2026-02-13 11:33:33] " + json.dumps({"timestamp": "2026-02-13T11:33:33", "event": event, **row}) + "\n")
    for i, p in enumerate(asked):
        put("request.received.openai", obj={"messages": [{"role": "user", "content": p}], "model": "m"})
        put("request.received", rid=i, obj={"text": None, "input_ids": [1, 2], "sampling_params": {}})
        put("request.finished", rid=i, obj={"text": "<s>" + p, "input_ids": [1, 2], "sampling_params": {}}, out={"text": "no"})
with open("sglang-old", "w") as f: # no bodies; the text of a conversation is only known at its end
    for line in open("sglang"):
        if "openai" not in line:
            f.write(line)
END
for log in "whole vllm-info" cut "cut-bodies whole --partial" bodies sglang sglang-old; do
	try $log --per-context 20
	python3 - <<'END'
import json
rows = {n: [json.loads(l) for l in open(f"out/{n}.jsonl")][1:-1] for n in ("contexts", "access")}
print([(c["dataset"], [t["role"] for t in c["turns"]]) for c in rows["contexts"]], [a["count"] for a in rows["access"]])
END
done

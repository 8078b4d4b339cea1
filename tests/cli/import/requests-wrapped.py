"""Twelve requests about two texts, one of them longer than what container runtimes write at once, as logs have them."""
import json, sys

form = sys.argv[1]
texts = [" ".join(f"{name}{i}" for i in range(n)) for name, n in (("pump", 3000), ("valve", 400))]
bodies = [{"model": "m", "messages": [{"role": "system", "content": texts[k % 2]}, {"role": "user", "content": f"What is \"{k}\"? é"}]} for k in range(12)]
lines = [json.dumps(b) for b in bodies]
stamps = [f"2026-11-22T05:58:{k:02d}.123456789Z" for k in range(12)]
nanos = [str(1795327080_000000000 + k * 10**9) for k in range(12)]
out = sys.stdout.buffer
CHUNK = 16384


def chunks(text):
    data = text.encode()
    return [data[i:i + CHUNK].decode(errors="ignore") for i in range(0, len(data), CHUNK)]


def put(text, end="\n"):
    out.write((text + end).encode())


def attributes(pairs):
    return [{"key": k, "value": {"stringValue": v}} for k, v in pairs]


def spans(made):
    return {"resourceSpans": [{"resource": {"attributes": attributes([("service.name", "s")])},
                               "scopeSpans": [{"spans": [{"name": "chat", "startTimeUnixNano": t, **m} for t, m in zip(nanos, made)]}]}]}


if form == "cri":  # two streams, mixed
    rows = []
    for k, line in enumerate(lines):
        pieces = chunks(line)
        for i, piece in enumerate(pieces):
            rows.append(f"{stamps[k]} stderr {'F' if i + 1 == len(pieces) else 'P'} {piece}")
            rows.append(f"{stamps[k]} stdout {'P' if k % 2 else 'F'} INFO: something else ")
    put("\n".join(rows))
elif form == "docker":
    for k, line in enumerate(lines):
        for piece in chunks(line + "\n"):
            put(json.dumps({"log": piece, "stream": "stderr", "time": stamps[k]}))
            put(json.dumps({"log": "ready\n", "stream": "stdout", "time": stamps[k]}))
elif form == "logtag":
    for k, line in enumerate(lines):
        pieces = chunks(line)
        for i, piece in enumerate(pieces):
            put(json.dumps({"date": 1.7e9, "log": piece, "logtag": "F" if i + 1 == len(pieces) else "P", "stream": "stderr"}))
elif form == "partial_message":
    for k, line in enumerate(lines):
        pieces = chunks(line)
        for i, piece in enumerate(pieces):
            more = {"partial_message": "true", "partial_id": str(k), "partial_last": "true" if i + 1 == len(pieces) else "false"}
            put(json.dumps({"log": piece, "container_id": "c", **(more if len(pieces) > 1 else {})}))
elif form == "journal":
    for k, line in enumerate(lines):
        pieces = chunks(line)
        for i, piece in enumerate(pieces):
            row = {"__REALTIME_TIMESTAMP": nanos[k][:-3], "_PID": "7", "MESSAGE": list(piece.encode()) if k % 3 == 0 else piece}
            put(json.dumps(row if i + 1 == len(pieces) else {**row, "_LINE_BREAK": "line-max"}))
elif form == "compose":
    for k, line in enumerate(lines):
        put(f"vllm-1  | {line}")
elif form == "loki":
    put(json.dumps({"streams": [{"stream": {"app": "v"}, "values": [[t, x] for t, x in zip(nanos, lines)]}]}))
elif form == "logcli":
    for k, line in enumerate(lines):
        put(json.dumps({"labels": {"pod": "p"}, "line": line, "timestamp": stamps[k]}))
elif form == "langfuse":
    for k, b in enumerate(bodies):
        put(json.dumps({"id": str(k), "traceId": "t", "startTime": stamps[k], "input": b if k % 2 else b["messages"], "output": {"role": "assistant", "content": lines[0]}}))
elif form == "audit":
    for k, b in enumerate(bodies):
        put(json.dumps({"timestamp": k, "event": {"schema_version": 1, "request_id": "r", "request": b, "response": {"choices": [{"message": {"content": "a"}}]}}}))
elif form == "gen_ai":
    put(json.dumps(spans([{"attributes": attributes([("gen_ai.request.model", "m"), ("gen_ai.system_instructions", json.dumps([{"type": "text", "content": b["messages"][0]["content"]}])),
                                                     ("gen_ai.input.messages", json.dumps([{"role": "user", "parts": [{"type": "text", "content": b["messages"][1]["content"]}]}]))])} for b in bodies])))
elif form == "gen_ai.prompt.N":
    put(json.dumps(spans([{"attributes": attributes([(f"gen_ai.prompt.{i}.{key}", m[key]) for i, m in enumerate(b["messages"]) for key in m])} for b in bodies])))
elif form == "llm":
    put(json.dumps(spans([{"attributes": attributes([("llm.model_name", "m")] + [(f"llm.input_messages.{i}.message.{key}", m[key]) for i, m in enumerate(b["messages"]) for key in m])} for b in bodies])))
elif form == "llm.prompts":
    put(json.dumps(spans([{"attributes": [{"key": "llm.prompts", "value": {"arrayValue": {"values": [{"stringValue": texts[k % 2] + f" What is {k}?"}]}}}]} for k in range(12)])))
elif form == "input.value":
    put(json.dumps(spans([{"attributes": attributes([("openinference.span.kind", "LLM"), ("input.value", x)])} for x in lines] )))
elif form == "event":
    put(json.dumps(spans([{"attributes": [], "events": [{"name": "gen_ai.content.prompt", "attributes": attributes([("gen_ai.prompt", json.dumps(b["messages"]))])}]} for b in bodies])))
elif form == "list":
    put(json.dumps(bodies))
elif form == "list, a row a line":
    put("[\n" + ",\n".join(lines) + "\n]")
elif form == "list, pretty":
    put(json.dumps(bodies, indent=2, ensure_ascii=False))
elif form == "objects, pretty":
    for b in bodies:
        put(json.dumps(b, indent=4))
elif form == "utf-16":
    out.write("\n".join(["😀", *lines, ""]).encode("utf-16"))
elif form == "utf-16, big end first":
    out.write(b"\xfe\xff" + "\r\n".join([*lines, ""]).encode("utf-16-be"))
elif form == "byte order mark":
    out.write("".join(line + "\n" for line in lines).encode("utf-8-sig"))
elif form == "CR LF":
    put("\r\n".join(lines))
elif form == "CR":
    put("\r".join(lines))
elif form == "hole":
    out.write((lines[0] + "\n" + "\n".join(lines[1:6])).encode() + b"\0" * 3000000 + ("\n".join(lines[6:]) + "\n").encode())

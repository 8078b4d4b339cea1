"""batch.py URL REQUESTS - answers a batch as OpenAI's API does, by asking URL, last request first; checks that each
request has the fields that OpenAI and vLLM document, and no others."""
import json, sys, urllib.request

seen = set()
for line in reversed(open(sys.argv[2]).readlines()):
    request = json.loads(line)
    assert set(request) == {"custom_id", "method", "url", "body"}, set(request)
    assert request["method"] == "POST" and request["url"] == "/v1/chat/completions"
    assert len(request["custom_id"]) <= 64 and request["custom_id"] not in seen
    seen.add(request["custom_id"])
    assert {"model", "messages"} <= set(request["body"]) <= {"model", "messages", "response_format", "reasoning_effort",
                                                            "max_completion_tokens"}
    assert [m["role"] for m in request["body"]["messages"]] == ["user"]
    post = urllib.request.Request(sys.argv[1] + "/chat/completions", json.dumps(request["body"]).encode(),
                                  {"Content-Type": "application/json"})
    with urllib.request.urlopen(post) as reply:
        body = json.load(reply)
    print(json.dumps({"id": "batch_req_1", "custom_id": request["custom_id"],
                      "response": {"status_code": 200, "request_id": "r", "body": body}, "error": None}))

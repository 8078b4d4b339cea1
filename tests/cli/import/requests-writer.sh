# The summary tells which program wrote the log, by its own lines; of a plain body it does not say.
command -v python3 >/dev/null || skip "python3 is not installed"
body='{"model":"m","messages":[{"role":"user","content":"a question"}]}'
said() {
	evp-gain -q log --model synthetic:tiny --gpu L4 --dram 1G --partial --summary s.json >out 2>&1
	python3 -c 'import json; print(json.load(open("s.json")).get("result", {}).get("written_by"))'
}
echo "$body" >log; said
echo "(APIServer pid=1) DEBUG 11-22 05:58:00 [request_logger:79] Request N/A JSON body: $body" >log; said
printf '{"log":"INFO 11-22 05:58:00 [logger:43] Received request 1: prompt: \x27a\x27, params: x\\n","stream":"stderr"}\n' >log; said
echo '{"timestamp":"2026-11-22T05:58:00","event":"request.received","rid":"1","obj":{"text":"a","sampling_params":{}}}' >log; said
echo '{"call_type":"acompletion","model":"m","messages":[{"role":"user","content":"a question"}]}' >log; said
{ echo 'srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200'; echo "$body"; } >log; said
{ echo '[GIN] 2026/11/22 - 05:58:00 | 200 |  1.2s | 127.0.0.1 | POST "/api/chat"'; echo "$body"; } >log; said

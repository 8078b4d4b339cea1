# What evp-gain, evp-import and evp-replay leave out of a log: understood, left out by reason, not recognised; in text, JSON,
# summary and status. More than a tenth is refused without --partial. Lines that are no requests do not count.
command -v python3 >/dev/null || skip "python3 is not installed"
cat >tiers.json <<'END'
{"evp":"tiers","version":1,"tiers":[
{"name":"dram","kind":"dram","uri":"/dev/shm/x","capacity_bytes":134217728,"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":0}]}
END
python3 - <<'END'
import json
text = "The depot reports gaskets before noon. " * 40
def body(i, **more):
    return {"model": "m", "time": 1.7e9 + i, "messages": [{"role": "user", "content": text + f"Which one, {i}?"}]} | more
noise = ["INFO:     10.0.0.1:5140 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK",
         "DEBUG 11-27 05:58:00 [core.py:49] EngineCore loop active, messages pending: {'input': 'none'}",
         "INFO 11-27 05:58:00 [loggers.py:257] Engine 000: Avg prompt throughput: 0.8 tokens/s",
         "Traceback (most recent call last):", "", "  [input] (prompt)",
         json.dumps({"time": 5, "status": "200", "request": "GET /health HTTP/1.1", "request_body": ""}),
         json.dumps({"level": "info", "msg": "prompt cache", "input": None, "prompt_tokens": 5}),
         json.dumps({"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "No."}}]})]
tools, lost = body(1, tools=[{}]), body(1, previous_response_id="resp_1")
unknown = {"model": "m", "input": text}
def put(name, rows):
    with open(name, "w") as f:
        f.writelines((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows)
good = [body(i) for i in range(30)]
put("clean", good + noise * 20)
put("mixed", good + noise + [lost, unknown])
put("agent", [body(0), tools, tools, tools, unknown, "2026-11-27T05:58:00Z stdout P " + json.dumps(body(5))[:900]])
put("two", good + [body(i, model="n", previous_response_id="r") for i in range(30)])
put("tenth", good[:18] + [lost, unknown])
put("more", good[:17] + [lost, unknown])
END
say() { grep -v ': \(assumed\|not counted\|which\|next\|evp-plan\|warning: \(reading\|the cache at\|of the contexts\)\)' err | grep -v 'TTFT\|prefixes\|contexts with'; }
gain() { evp-gain "$@" --model synthetic:tiny --gpu L4 --dram 1M --summary gain.json; }
import() { evp-import --requests "$@" --summary import.json -o out-$1; }
replay() { log=$1 && shift && evp-replay --assume 2:0.9 -m synthetic:tiny --gpu L4 --tiers tiers.json --trace $log --policy lru --summary replay.json "$@"; }
try() { # LOG OPTION...
	for tool in gain import replay; do
		rm -rf out-*
		$tool "$@" >out 2>err
		echo "$tool $*: status $?, $(ls -d out-* 2>/dev/null) $(wc -c <out | sed 's/^ *0$/nothing/; s/[0-9][0-9]*/a table/')"
		say
		grep '^  \(requests\|left out\|not recognised\) ' out
		python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))["result"]; print({k: r[k] for k in ("rows_left_out", "rows_not_recognised", "left_out", "requests", "requests_found") if k in r})' $tool.json
	done
}
try clean
try mixed
try agent
try agent --partial
gain mixed --json 2>/dev/null | tr , '\n' | grep 'n_requests\|reason\|n_left_out\|n_not_rec'
echo "-- the other model's requests, and the border"
gain two --dataset m 2>&1 >/dev/null | grep 'left out'
gain two --dataset m >/dev/null 2>&1; echo "status $?"
gain two >/dev/null 2>err; echo "status $?"; tail -n 1 err
for log in tenth more; do gain $log >/dev/null 2>err; echo "status $?"; grep error err; done

# A log of requests without --requests is noticed, and a text that only looks a little like one is not.
. "$TOP/tests/cli/typed/said.inc"
line="INFO 11-19 06:00:01 [logger.py:43] Received request cmpl-1: prompt: 'Who jumps?', params: SamplingParams(n=1)"
printf '%s\n%s\n' "$line" "$line" >vllm.log
printf 'This is what vLLM logs:\n%s\n' "$line" >about.md
printf '{"model":"m","messages":[{"role":"user","content":"Who?"}]}\n{"model":"m","prompt":"Who?"}\n' >batch.jsonl
printf '{"custom_id":"1","body":{"prompt":"Who?"}}\n' >batch
printf '{"id":"a","text":"One."}\n{"id":"b","body":"Two."}\n' >rows.jsonl
for f in vllm.log batch.jsonl batch rows.jsonl; do said evp-import $f; done
evp-import vllm.log 2>&1 >/dev/null | grep -c 'warning: .*--requests'
evp-import about.md 2>&1 >/dev/null | grep -c -e --requests
true

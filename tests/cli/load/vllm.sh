# The connector for vLLM between a real store and stand-ins for vLLM and torch: what is found and for whom, what is written where,
# failed loads, and marks of requests with dropped tokens. tests/golden/serving runs it in vLLM itself.
. "$TOP/tests/cli/load/plans.inc"
. "$TOP/tests/cli/load/python.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
plan other 60000 100000 <<-END
	b1 60 none dram
END
evp-load -q other.jsonl --payloads pay --namespace tenant || exit
"$python" "$TOP/tests/cli/load/vllm_use.py" m.jsonl "$(file ssd c1 none)"

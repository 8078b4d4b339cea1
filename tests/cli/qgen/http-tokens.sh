# The summary counts tokens.
. "$TOP/tests/cli/qgen/mock"
evp-qgen c.jsonl --api-base "$base/ok/v1/" --model m >/dev/null

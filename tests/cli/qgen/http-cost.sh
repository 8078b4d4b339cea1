# The summary counts tokens and what they cost.
. "$TOP/tests/cli/qgen/mock"
evp-qgen c.jsonl --api-base "$base/ok/v1/" --model m --price-in 2 --price-out 100 >/dev/null

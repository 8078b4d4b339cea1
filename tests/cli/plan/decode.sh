# Answers of many tokens: what they read of a kept cache counts, in the plan and in --verify.
. "$TOP/tests/cli/plan/edit.inc"
cp "$DATA/table.h5" "$DATA/tiers.json" .
plan() { evp-plan -q table.h5 --tiers tiers.json --alpha 1 -o m.jsonl "$@" || echo $?; }
rows() { sed -n 's/.*"id":"\([^"]*\)".*"config":"\([^"]*\)","tier":"\([^"]*\)".*"ttft_s":\([^,]*\),"utility":\([^,]*\).*/\1 \2 \3 TTFT \4 utility \5/p' m.jsonl; }
plan && rows
plan --output-tokens 1000000 --gpu L4 && rows && head -n 1 m.jsonl | grep -o '"decode_s[^,]*'
evp-plan -q table.h5 --verify m.jsonl && echo verified
try 's/"decode_s_per_byte":[^,]*/"decode_s_per_byte":4e-6/'
try 's/"decode_s_per_byte":[^,]*/"decode_s_per_byte":-1/'
plan --output-tokens 5
plan --gpu L4
plan --output-tokens 5 --gpu L5
plan --output-tokens 5 --gpu L4 --online

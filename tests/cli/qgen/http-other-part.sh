# Answers of another model are not taken for ours, and not thrown away.
. "$TOP/tests/cli/qgen/mock"
echo '{"evp":"answers","version":1,"model":"other","per_context":2}' >out.jsonl.part
ask ok -o out.jsonl

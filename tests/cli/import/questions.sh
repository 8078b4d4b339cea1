# Rows with `question` or `query`, LongBench v2's choices, a table; columns with texts that are not read are named.
cat >v2.jsonl <<'E'
{"_id":"a0","domain":"Legal","difficulty":"easy","length":"short","question":"Which part?","choice_A":"the rotor","choice_B":"the valve","choice_C":"the lease","choice_D":"none","answer":"A","context":"Manual 40"}
{"_id":"a1","domain":"Legal","difficulty":"","question":"Why?","context":"Manual 41","a b":"x","n":3}
E
printf 'query,context,source\nWho?,Manual 42,me\n' >table.csv
evp-import v2.jsonl table.csv 2>&1 | grep -v '"evp"'
echo '{"context":"Manual 43","input":"What?"}' >plain.jsonl
evp-import plain.jsonl 2>&1 >/dev/null | grep -c 'not read' || true

# Rows that cannot be used are named and counted, the others go on; a stream of ours keeps its lineage.
cat >mixed.jsonl <<'END'
{"context":"One.","input":"a","_id":1}
{"input":"no document"}
{"context":"","_id":3}

{"context":"Two.","_id":1}
{"context":"Three.","answers":["not asked"],"_id":"x"}
END
evp-import mixed.jsonl >first.jsonl
echo $?
evp-import first.jsonl | head -n 1
echo '{"evp":"contexts","version":1}' >cut.jsonl
sed -n 2p first.jsonl >>cut.jsonl
evp-import cut.jsonl
echo $?
head -c 60 mixed.jsonl >torn.jsonl
evp-import torn.jsonl
echo $?
evp-import missing.zip
echo $?
evp-import </dev/null
echo $?
evp-import first.jsonl >/dev/full
echo $?
evp-import first.jsonl -o no/such/folder
echo $?

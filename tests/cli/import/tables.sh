# Rows as a JSON list and as CSV become the contexts that the same rows as JSON Lines become; Python's csv and json write
# them. Parquet is refused by name and by content, with what converts it. Rows that cannot be used are named.
python3 - <<'END'
import csv, json
rows = [
    {"context": 'Two lines\nof "text", and a comma.', "input": "Who, exactly?", "answers": ["Ada", "Grace"], "_id": "a"},
    {"context": "中文\r\nwith a carriage return", "input": 'He said "no"?', "answers": [], "_id": "b"},
    {"context": "  blanks  ", "input": "", "answers": ["one"], "_id": "c"},
]
with open("rows.jsonl", "w") as f:
    f.writelines(json.dumps(row) + "\n" for row in rows)
json.dump(rows, open("rows.json", "w"), indent=2, ensure_ascii=False)
for name, options in ("rows.csv", {}), ("unix.csv", dict(lineterminator="\n")), ("quoted.csv", dict(quoting=csv.QUOTE_ALL)):
    with open(name, "w", newline="") as f:
        w = csv.writer(f, **options)
        w.writerow(rows[0])
        for row in rows:
            w.writerow([json.dumps(v) if isinstance(v, list) else v for v in row.values()])
contexts = [{"id": "x1", "text": "One.", "dataset": "d", "n_tokens": 3, "inputs": [{"question": "q?", "answers": ["a"]}]}]
json.dump(contexts, open("contexts.json", "w"))
with open("contexts.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(contexts[0])
    w.writerow([json.dumps(v) if isinstance(v, list) else v for v in contexts[0].values()])
END
body() { sed '1d; s/^{"id":"[a-z]*\//{"id":"/; s/"dataset":"[a-z]*"/"dataset":""/'; }
evp-import -q rows.jsonl | body >want
for f in rows.json rows.csv unix.csv quoted.csv; do evp-import -q $f | body | cmp - want; done
for f in rows.json rows.csv; do { printf '\357\273\277'; cat $f; } >bom.${f#*.}; evp-import -q bom.${f#*.} | body | cmp - want; done
for f in contexts.json contexts.csv; do evp-import -q $f | sed 1d | cut -c 1-90; done
evp-import -q - <rows.json | body | cmp - want # a pipe has no name: its contents decide
for text in '[1] A list of numbers.' '["not","rows"]' '[{"cut":' '[]'; do
	printf '%s' "$text" >listed
	evp-import -q listed | sed -n '2s/.*"text":\("[^,]*\).*/\1/p'
done
mkdir data && cp rows.csv data/qasper.csv && cp rows.json data/trec.json
evp-import -q data --dataset trec | sed 1d | grep -c '"dataset":"trec"'
bad() {
	printf '%b' "$2" >"$1"
	evp-import "$1" >out
	echo "$1 $?, $(grep -c '"id"' out)"
}
bad cut.json '[{"context":"a"},'
bad object.json '[{"context":"a"},7,{"contex":"b"},{"text":"no id"}]'
bad empty.json '[]'
bad open.csv 'context,input\n"a,b\nc,d\n'
bad inside.csv 'context,input\na"b,c\n'
bad after.csv 'context,input\n"a"b,c\n'
bad names.csv 'context,,input\na,b,c\n'
bad twice.csv 'context,context\na,b\n'
bad columns.csv 'document,input\na,b\n'
bad short.csv 'context,input\na\nb,c\nd,e,f\n\n\r\n"g",h'
bad none.csv ''
bad head.csv 'context,input\n'
bad rows.parquet 'PAR1 and so on PAR1'
bad stored 'PAR1 and so on PAR1'
mkdir folder && cp rows.parquet rows.csv folder
evp-import folder >out
echo "folder $?, $(grep -c '"id"' out)"
evp-import folder -o folder/rows.csv
echo $?
evp-import missing.parquet
echo $?

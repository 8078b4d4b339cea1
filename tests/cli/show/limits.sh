# what a summary leaves out: rows above --rows, characters of a cell above 60, tools below the 33rd of a chain; and how
# much of a file is looked at to tell what it is
row() { printf '{"id":"%s","text":"%s"}\n' "$1" "$2"; }
letters() { printf '%*s' "$1" '' | tr ' ' "$2"; }
{ row a one; row b two; } >two.jsonl
for n in 1 2 3 0; do evp-show --rows "$n" two.jsonl | sed -n '/^  [ab] /p; /more/p'; done
for n in 59 60 61; do
	row a one >contexts.jsonl
	printf '{"id":"q","context":"a","split":"test","text":"%s"}\n' "$(letters "$n" x)" >questions.jsonl
	evp-show questions.jsonl | sed -n 's/.* \(x*\)\(\.*\)$/\1\2/p' | wc -c
done
# A row without a header that is longer than the first 65,536 bytes.
for n in 65535 65536 65537; do
	row a "$(letters $((n - 20)) y)" >long.jsonl
	evp-show --check long.jsonl
done
for n in 32 33 34; do
	chain='{"tool":"last","args":[],"from":[]}'
	for _ in $(seq 2 "$n"); do chain='{"tool":"t","args":[],"from":['$chain']}'; done
	printf '%s\n{"id":"a","text":"one"}\n{"end":true,"rows":1}\n' "{\"evp\":\"contexts\",\"version\":1,${chain#?}" >deep.jsonl
	evp-show --lineage deep.jsonl | grep -c -e t
done
# config.json of a model folder
cp -r "$DATA/minibert" folder && chmod -R u+w folder
for n in 16777215 16777216 16777217; do
	head -c "$((n - $(wc -c <"$DATA/minibert/config.json")))" /dev/zero | tr '\0' ' ' | cat "$DATA/minibert/config.json" - >folder/config.json
	evp-show --check folder
done

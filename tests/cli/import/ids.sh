# An id that a plan and a manifest would refuse is refused where contexts are read: by evp-import, which leaves the row out,
# and by every tool that reads contexts. 1023 bytes are allowed.
printf 'A text.' >"$(printf 'a\033[31mb.txt')"
printf 'Another text.' >fine.txt
evp-import . -o out.jsonl
echo "$?, $(grep -c '"id"' out.jsonl)"
long=$(printf '%01023d' 0)
for id in "$long" "${long}0" 'a\u001b[31mb' 'a\nb' '' 'plain'; do
	printf '{"id":"%s","text":"The only text. It says 12 things."}\n' "$id" >c.jsonl
	evp-import -q c.jsonl 2>err >got
	echo "import $?, $(grep -c '"id"' got), $(sed 's/0\{20,\}/0.../' err)"
	evp-qgen -q c.jsonl --per-context 1 2>err >/dev/null
	echo "qgen $?, $(sed 's/0\{20,\}/0.../' err)"
done

# Twelve requests, in the forms in which runtimes, journals, collectors and exports have their lines; and what is not whole.
command -v python3 >/dev/null || skip "python3 is not installed"
make="$TOP/tests/cli/import/requests-wrapped.py"
for form in cri docker logtag partial_message journal compose loki logcli langfuse audit gen_ai gen_ai.prompt.N llm llm.prompts input.value event \
	list 'list, a row a line' 'list, pretty' 'objects, pretty' utf-16 'utf-16, big end first' 'byte order mark' 'CR LF' CR hole; do
	python3 "$make" "$form" >log
	evp-import --requests log -o out 2>said
	echo "$form: status $?, $(sed -n 's/^evp-import: \([0-9]* requests\) in .*/\1/p' said), $(sed -n 's/^evp-import: \([0-9]* contexts\) .*/\1/p' said)"
	grep -E 'error|left out' said
done
echo 'a piece without its end:'
{ python3 "$make" cri; echo '2026-11-22T06:00:00Z stderr P {"model":"m","messages":[{"role":"user","content":"a'; } >log
evp-import --requests log -o out 2>&1 | grep 'left out'
echo 'a list without its end, and a cut value in one:'
python3 "$make" 'list, pretty' | head -n 100 >log
evp-import --requests log -o out 2>&1 | grep -v 'questions'
{ printf '{\n "model": "m",\n'; python3 "$make" cri; } >log
evp-import --requests log -o out 2>&1 | grep -v 'questions'
echo 'what is not known:'
printf '{"id":1,"traceId":"t","What did I say?":"x","rows":[{"a":1}],"output":"y"}\n' >log
evp-import --requests log -o out 2>&1 || true

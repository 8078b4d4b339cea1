# Quantised folders that contradict themselves are refused in one sentence, which names the tensor or the field.
python3 "$TOP/tests/cli/profile/quantised.py" . >folders
echo '{"id":"c/0","dataset":"made","text":"The harbour master owns 7 boats.","ask":" {question}"}' >c.jsonl
echo '{"id":"c/0/0","context":"c/0","split":"test","text":"Who owns them?"}' >q.jsonl
while read -r name path; do
	evp-profile c.jsonl q.jsonl --model "$path" --max-new-tokens 1 -q --configs knorm:drop=0.5 -o p.h5 >log 2>&1 && echo accepted >log
	echo "$name: $(head -n 1 log)"
done <folders

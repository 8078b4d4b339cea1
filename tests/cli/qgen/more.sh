# Other options later: a question keeps its id, so a profile made with the first ones takes the second ones, too, and is asked
# only what is new.
printf '{"id":"a","text":"%s"}\n' "$(for i in $(seq 60); do printf 'The lamp number %d burns in room %d of the house. ' "$i" $((i * 7)); done)" >c.jsonl
profile() {
	evp-profile c.jsonl "$1" --model synthetic:tiny --chat-template none --max-new-tokens 2 -c none -o p.h5 2>said || { echo "status $?" && cat said; }
	grep -o '[0-9]* questions: [0-9]* answers' said
}
evp-qgen -q c.jsonl --per-context 3 -o three.jsonl
evp-qgen -q c.jsonl --per-context 6 -o six.jsonl
profile three.jsonl
profile six.jsonl
cat three.jsonl six.jsonl | grep -o '"id":"[^"]*"' | sort | uniq -d | wc -l

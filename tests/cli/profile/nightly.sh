# One bad row never stops a run: what changed, what is too long, what lacks its partner is said and counted; the rest is
# done, and what FILE has of the others stays.
context() { printf '{"id":"%s","text":"%s","ask":"%s"}\n' "$1" "$2" "${3- {question\}}"; }
question() { printf '{"id":"%s","context":"%s","split":"train","text":"%s"}\n' "$@"; }
profile() {
	evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --configs none --max-new-tokens 4 -q -o p.h5
	echo "status $?" >&2
}
{ context a 'One.' && context b 'Two.'; } >c.jsonl
{ question qa a 'What?' && question qb b 'What?'; } >q.jsonl
profile
long=$(yes 'It was a bright cold day in April. ' | head -n 20 | tr -d '\n')
{ context a 'One.' && context b 'Changed.' && context c "$long" && context d 'Four.' && context e 'Five.' 'no place for it' &&
	context f 'Six.'; } >c.jsonl
{ question qa a 'Why?' && question qa2 a 'Who?' && question qb b 'What?' && question qc c 'What?' && question qe e 'What?' &&
	question qf f 'What?' && question qg g 'What?'; } >q.jsonl
profile
evp-show p.h5 | sed -n '/^  train/p; /^  [abcdef] /p' | cut -c 1-22

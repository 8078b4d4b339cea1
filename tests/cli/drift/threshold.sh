# --threshold: exactly the contexts whose mean fell by more; more than any lost: an empty list.
. "$TOP/tests/cli/drift/drift.inc"
for x in 0 0.12 0.9; do
	drift night2.jsonl -o l.jsonl --threshold $x --per-context 10 2>&1 | sed 's/promised.*over/over/'; bare l.jsonl | sed 's/"questions".*//'
done

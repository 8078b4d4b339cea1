# Killed at random moments, the same command goes on: the list and the state are those of a run that was not killed. Of two at
# once, one says that the other is at work, or comes after it.
. "$TOP/tests/cli/drift/drift.inc"
drift night1.jsonl -o whole.jsonl --state night1.state && cp night1.state whole.state || exit
drift night2.jsonl -o whole.jsonl --state whole.state 2>/dev/null || exit
cp night1.state killed.state
night2="evp-drift table.h5 m.jsonl --contexts c.jsonl --questions night2.jsonl $model --embedder $DATA/minibert -q -o killed.jsonl --state killed.state"
for i in 1 2 3 4 5 6 7 8; do
	timeout -s KILL 0.$(printf %02d $((i * 8))) $night2 2>/dev/null
done
mkdir -p killed.jsonl.d && echo part >killed.jsonl.d/table.h5.tmp.Ab12Cd # as a killed evp-score leaves it
$night2 2>/dev/null || { sleep 1 && $night2 2>/dev/null; } || echo "status $?"
for f in jsonl state; do
	sed 1d killed.$f >killed && sed 1d whole.$f | cmp - killed
done
ls -d killed.jsonl.* 2>/dev/null

mkdir killed.jsonl.d && flock killed.jsonl.d $night2 2>&1; echo $?
cp night1.state killed.state
$night2 2>one & $night2 2>two; wait
grep -hv -e moved -e "another process is writing 'killed.jsonl'" one two
for f in jsonl state; do
	sed 1d killed.$f >killed && sed 1d whole.$f | cmp - killed
done

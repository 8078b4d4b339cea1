# Refusals of several contexts in the same words end the run: a wrong model or key is not asked about once per context.
# Refusals that blame the length of the text, or say something else each time, do not.
. "$TOP/tests/cli/qgen/mock"
for s in no-model bad-key elsewhere too-long moody; do
	ask $s --concurrency 1 -o q.jsonl 2>err
	echo "$s: status $?, $(wc -l <"$log") requests: $(tail -n 1 err | sed 's/127.0.0.1:[0-9]*/HOST/')"
	: >"$log"
done
ls

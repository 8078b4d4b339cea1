# A worker that is killed leaves its context to the others. Workers end with their parent, whether it is killed or
# interrupted; the same command goes on.
. "$TOP/tests/cli/cuda/device.inc"
[ -r "/proc/$$/task/$$/children" ] || skip "the kernel does not list children"
for id in d e f g h; do
	printf '{"id":"%s","text":"The fox %s jumps over Reginald.","ask":" {question}"}\n' $id $id >>c.jsonl
	printf '{"id":"q%s","context":"%s","split":"train","text":"What is the name?"}\n' $id $id >>q.jsonl
done
# Starts a run on two devices, waits for a first result, and sets $parent and $workers.
start() {
	evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs knorm:drop=0.5 --max-new-tokens 4 --decode-times off --dtype f32 -q --devices 0,1 -o "$1" 2>heard &
	parent=$!
	until ls "$1".d/*.h5 >/dev/null 2>&1 || ! kill -0 $parent 2>/dev/null; do sleep 0.02; done
	workers=$(cat /proc/$parent/task/$parent/children)
	echo "$workers" | wc -w
}
end() {
	wait $parent 2>/dev/null
	echo "status $?"
	cat heard >&2
	for worker in $workers; do
		for try in $(seq 500); do kill -0 "$worker" 2>/dev/null && sleep 0.02; done
		kill -0 "$worker" 2>/dev/null && echo "a worker lives on after $try looks"
	done
}
same() { "$BUILD/tests/tools/timeless" "$1" t.h5 && cmp t.h5 one.h5; }
export EMU_DEVICES=2
profile --devices 0 -o p.h5
"$BUILD/tests/tools/timeless" p.h5 one.h5
start worker.h5
kill -KILL "${workers%% *}"
end
same worker.h5
for signal in KILL INT TERM; do
	start $signal.h5
	kill -$signal $parent
	end
	ls $signal.h5 2>/dev/null
	profile --devices 1,0 -o $signal.h5
	same $signal.h5
done

# Looking beside a process that puts and removes all the time never takes a change for damage.
. "$TOP/tests/cli/load/python.inc"
{ echo "tier dram dram $PWD/dram 6000000"; echo "tier ssd file $PWD/ssd 10000000"
  for letter in a b c d e f g h; do echo "context $letter 300 none ssd"; done; echo "context y 40 none dram"; } | "$BUILD/tests/tools/make-load" m.jsonl pay || exit
evp-load -q m.jsonl --payloads pay || exit
"$python" - <<-'END' &
	import evp, glob
	payload = open(sorted(glob.glob("pay/*"))[0], "rb").read()
	with evp.open("m.jsonl", wait_s=20) as store:
	    n = 0
	    while True:
	        n += 1
	        store.put(f"z{n % 5}", "ssd" if n % 3 else "dram", payload)
	        if n % 4 == 0:
	            store.remove(f"z{n % 5}")
END
writer=$!
n=0
while [ $n -lt ${ROUNDS:-40} ]; do
	n=$((n + 1))
	evp-show ssd >out 2>&1 || { echo "show: $(cat out)"; break; }
	evp-show --check ssd >out 2>&1 || grep -q 'changes all the time' out || { echo "show --check: $(cat out)"; break; }
	evp-load -q --dry-run m.jsonl --payloads pay >out 2>&1 || { echo "dry run: $(cat out)"; break; }
	kill -0 $writer || break
done
kill $writer
wait $writer 2>/dev/null
echo "$n rounds"

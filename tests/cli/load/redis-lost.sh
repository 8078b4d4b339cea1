# Values that Redis has lost, or that somebody has changed, cut, or moved under another key: never served, named, and put
# again by the next load.
. "$TOP/tests/cli/load/redis.inc"
start
redis_plan m <<-END
	a1 100 none far
	b1 200 none far
	c1 8300 none far
	d1 8300 none far
END
evp-load -q m.jsonl --payloads pay || exit
# keys CONTEXT: the keys of its payload.
keys() { cli --scan --pattern "*{$(basename "$(file far "$1" none)")}*" | sort; }
again() { evp-load -q m.jsonl --payloads pay "$@" 2>&1 | hide; }
echo "lost:"
cli del "$(keys a1)" >del.log; fetch a; again; fetch a
cli del "$(keys c1 | tail -n 1)" >del.log; fetch c; again; fetch c
echo "changed:"
cli setrange "$(keys b1)" 500 X >set.log; fetch b
evp-show --check far 2>&1 | hide
again; fetch b; again --verify; fetch b
echo "changed in the middle of a segment, after the payload was opened:"
[ "$python" ] && "$python" - <<-END 2>&1 | hide
	import evp, subprocess
	key = "$(keys c1 | sed -n 1p)"
	with evp.open("m.jsonl") as store:
	    found = store.find([1000 * ord("c") + i for i in range(9000)])
	    with store.payload(found) as payload:
	        first = payload.fetch("layers.0.k", heads=(0, 1), rows=(0, 1))
	        assert payload.fetch("layers.0.k", heads=(0, 1), rows=(0, 1)) == first
	        subprocess.run(["redis-cli", "-p", "$port", "setrange", key, "100000", "X"], stdout=subprocess.DEVNULL)
	        for rows in (0, 1), (400, 401), (8299, 8300):
	            try:
	                payload.fetch("layers.0.k", heads=(0, 1), rows=rows)
	                print(rows, "is read")
	            except evp.Error as e:
	                print(rows, e)
	        try:
	            print("its file:", payload.fileno())
	        except OSError as e:
	            print(e)
END
again --verify
echo "cut:"
cli set "$(keys b1)" short >set.log; fetch b; again; fetch b
echo "another payload's value:"
set -- $(keys c1); one=$1; set -- $(keys d1)
cli copy "$one" "$1" replace >copy.log; fetch c d; again --verify; fetch c d
echo "all of them:"
cli flushall >flush.log; fetch a b c d; again; fetch a b c d

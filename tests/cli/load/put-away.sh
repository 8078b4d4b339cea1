# A serving process changes its tiers while a server is away or does not answer: what needs no byte of the server is done,
# the rest is refused and changes nothing, and what was left on the server is swept by the next writer that reaches it.
. "$TOP/tests/cli/load/redis.inc"
[ "$python" ] || skip "a sanitizer must be linked into every program"
start
redis_plan m <<-END
	a1 100 none dram
	b1 60 none far
	c1 30 none far
	d1 20 none far
	e1 20 none recompute
END
evp-load -q m.jsonl --payloads pay || exit
redis_plan other <<-END
	e1 20 none dram
END
change() {
	"$python" - "$@" <<-'END' 2>&1 | hide
		import evp, glob, sys
		def payload(letter):
		    first = (1000 * ord(letter)).to_bytes(4, "little") + (1000 * ord(letter) + 1).to_bytes(4, "little")
		    return next(data for data in (open(path, "rb").read() for path in glob.glob("pay/*")) if first in data)
		with evp.open("m.jsonl", wait_s=0) as store:
		    for what in sys.argv[1:]:
		        name, id, *tier = what.split()
		        try:
		            store.put(id, *tier, payload(id[0])) if name == "put" else getattr(store, name)(id, *tier)
		            print(what, "done")
		        except evp.Error as e:
		            print(what, type(e).__name__, e)
	END
}
say() { where; echo "$(redis-cli -p "$port" dbsize) values"; }
export EVP_REDIS_TIMEOUT=0.3
echo 'stopped:'
kill -STOP $server
change 'put e1 dram' 'put e1 far' 'move c1 dram'
kill -CONT $server
echo 'refuses:'
redis-cli -p "$port" config set requirepass secret
change 'put b1 dram' 'move c1 dram' 'move a1 far' 'put e1 far' 'remove d1' 'remove d1'
where; fetch a b c d e
redis-cli -p "$port" -a secret --no-auth-warning config set requirepass ''
say
echo 'back:'
change 'remove a1'; say
change 'move e1 far'; say
change 'move c1 dram' 'move b1 far'; say
echo 'gone:'
kill_server
change 'put a1 dram' 'remove b1' 'move e1 dram' 'put e1 dram' 'put c1 far'
where; fetch a b c e
start
change 'put a1 far'; say; evp-show --check dram far | grep -c .

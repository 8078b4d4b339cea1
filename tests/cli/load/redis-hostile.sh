# Servers that answer without an end, byte by byte, with lists in lists, or with keys for ever; and a host that drops
# packets: each costs the time limit and one sentence, and no more.
. "$TOP/tests/cli/load/redis.inc"
/usr/bin/python3 "$TOP/tests/cli/load/redis_hostile.py" >port 2>hostile.log &
echo $! >>servers
until [ -s port ]; do sleep 0.05; done
port=$(cat port)
export EVP_REDIS_TIMEOUT=0.5
redis_plan m <<-END
	a1 100 none dram
	b1 200 none far
END
evp-load -q m.jsonl --payloads pay || exit
# as MODE SECONDS COMMAND...: runs it while the server misbehaves.
as() {
	echo $1 >mode.new && mv mode.new mode
	seconds=$2
	echo "$1:"
	shift 2
	timeout "$seconds" "$@" >said 2>&1
	echo "status $?"
	hide <said
	rm mode
}
reader() { [ ! "$python" ] || as "$@" "$python" "$TOP/tests/cli/load/redis_fetch.py" m.jsonl b; }
as endless 5 evp-load -q m.jsonl
reader endless 5
reader drip 5
rm -r far
EVP_REDIS_TIMEOUT=10 as wide 20 evp-load -q m.jsonl --payloads pay
export EVP_REDIS_TIMEOUT=0.1
as circle 20 evp-load -q m.jsonl --payloads pay
export EVP_REDIS_TIMEOUT=10
evp-load -q m.jsonl --payloads pay && fetch b
export EVP_REDIS_TIMEOUT=0.1
echo "a host that drops packets is left alone for a while:"
[ ! "$python" ] || "$python" - <<-END 2>&1 | hide
	import evp, socket, time
	full = socket.socket()
	full.bind(("127.0.0.1", 0))
	full.listen(0)
	waiting = [socket.socket() for i in range(4)]
	for one in waiting:
	    one.setblocking(False)
	    one.connect_ex(full.getsockname())
	text = open("m.jsonl").read()
	open("dropped.jsonl", "w").write(text.replace(":$port", ":%d" % full.getsockname()[1]))
	with evp.open("dropped.jsonl") as store:
	    found = store.find([1000 * ord("b") + i for i in range(300)])
	    for wait in 0, 1.2:
	        time.sleep(wait)
	        try:
	            store.fetch(found)
	        except evp.Error as e:
	            print(str(e).replace(str(full.getsockname()[1]), "PORT"))
END

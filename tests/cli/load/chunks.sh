# Contexts found in part, on a folder and on a server: with --chunks and not without, for `none` alone, after moves, a
# rollback and a kill; what is fetched of one is a payload of its own.
. "$TOP/tests/cli/load/redis.inc"
[ "$python" ] || skip "a sanitizer must be linked into every program"
start
plan() {
	"$BUILD/tests/tools/make-load" m.jsonl pay <<-END
		tier dram dram $PWD/dram -
		tier far redis redis://127.0.0.1:$port,$PWD/far -
		context a1 700 none ${1:-dram}
		context b1 600 none far
		context c1 1000 kivi:bits=2 dram
		context d1 256 none dram
	END
}
look() {
	"$python" - <<-END
		import evp, json, struct
		def say(name, ids):
		    found = store.find(ids)
		    if not found:
		        return print(name, "nothing")
		    data = bytes(store.fetch(found))
		    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
		    with store.payload(found) as payload:
		        same = bytes(payload.fetch("layers.0.k")) == data[-2 * found.n_tokens * 128:][:found.n_tokens * 128]
		    print(name, found.n_tokens, found.tier, "part" if found.part else "whole", len(data) == found.size,
		          header["__metadata__"]["n_tokens"], header["layers.0.v"]["shape"], same)
		with evp.open("m.jsonl") as store:
		    for letter in "abcd":
		        first = 1000 * ord(letter)
		        say(letter, [first + i for i in range(1200)])
		        say(letter + " 550", [first + i for i in range(550)] + [1] * 600)
		        say(letter + " 255", [first + i for i in range(255)])
		    print([tier.n_placed for tier in store.tiers()])
	END
}
plan
evp-load -q m.jsonl --payloads pay; look
echo 'chunks:'; evp-load --json m.jsonl --chunks 2>/dev/null | grep -o '"chunked":[0-9]*'; look
echo 'again:'; evp-load --json m.jsonl --chunks 2>&1 | grep -o '"chunked":[0-9]*\|nothing to do.*'
echo 'moved:'; cp m.jsonl first.jsonl; plan far; evp-load -q m.jsonl --chunks; look; evp-load -q m.jsonl --rollback --chunks; look | sed -n 1,3p
echo 'index made again:'; rm far/evp-index; evp-load -q first.jsonl --chunks; evp-show --check dram far | grep -c .; look | tail -n 8
echo 'without:'; evp-load --json first.jsonl 2>/dev/null | grep -o '"chunked":[0-9]*'; look | grep -c part
echo 'killed:'
for i in 1 2 3 4 5 6 7 8; do
	timeout -s KILL "0.0$i" evp-load -q first.jsonl --chunks 2>/dev/null
	look | grep -v part >after$i || exit
done
evp-load -q first.jsonl --chunks; look | grep -c part

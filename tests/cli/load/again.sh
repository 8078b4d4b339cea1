# A load of what the last one left: everything that was done meanwhile is noticed.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay && second_plan n && evp-load -q n.jsonl --payloads pay || exit
placed >was
# try WHAT: a load, what it says, and what is in place then
try() {
	echo "$1:"
	evp-load --json n.jsonl --payloads pay 2>said | grep -o '"nothing_to_do":[a-z]*\|"damaged":[0-9]*\|"[a-z]*_bytes":[1-9][0-9]*' | tr '\n' ' '
	echo
	sed -n "s|$PWD/||g; s|evp-payloads/.*'|FILE'|; s/^evp-load: warning: //p; s/^evp-load: error: //p" said
	placed | cmp was - || exit
}
# repack FILE: the same payload with a longer header
repack() {
	python3 - "$1" <<-'END'
		import struct, sys
		bytes = open(sys.argv[1], "rb").read()
		n, = struct.unpack("<Q", bytes[:8])
		open(sys.argv[1], "wb").write(struct.pack("<Q", n + 8) + bytes[8:8 + n] + b" " * 8 + bytes[8 + n:])
	END
}
try 'nothing was done'
rm "$(file ssd c1 none)"
try 'an evicted payload is gone'
try again
rm "$(file ssd b1 kivi:bits=2)"
try 'a payload is gone'
try again
truncate -s 5 "$(file dram a2 none)"
try 'a payload is cut'
repack pay/b1-*
try 'a payload was packed again'
try again
rm ssd/evp-index
try 'the index is gone'
# the same places by another manifest; then that is in force
sed 's/"alpha":[0-9.]*/"alpha":7/' n.jsonl >o.jsonl
evp-load --json o.jsonl 2>/dev/null | grep -o '"nothing_to_do":[a-z]*'
try 'another manifest'
evp-load -q --rollback n.jsonl && evp-load --json o.jsonl 2>/dev/null | grep -o '"nothing_to_do":[a-z]*'
try 'after a rollback'
# another namespace in the folders changes their generation, not what is in place
evp-load -q n.jsonl --payloads pay --namespace other && placed >was || exit
try 'another namespace'
for i in 1 2 3; do evp-load -q n.jsonl --dry-run --json | grep -o '"nothing_to_do":[a-z]*'; done | sort -u
evp-load -q n.jsonl --chunks; evp-load --json n.jsonl 2>/dev/null | grep -o '"nothing_to_do":[a-z]*'

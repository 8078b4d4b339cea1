# Damaged files of a store: an index is written again, a state is refused with its cure.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
placed >was
cp ssd/evp-index index && cp ssd/evp-state state
try() {
	evp-load -q m.jsonl --payloads pay 2>said
	echo "status $?"
	sed "s|$PWD/||; s/([^)]*)/(WHY)/" said
}
# some bytes are drawn, and may be an x
flip() {
	byte=x
	[ "$(head -c $(($2 + 1)) "$1" | tail -c 1 | tr -d '\0')" != x ] || byte=y
	printf $byte | dd of="$1" bs=1 seek="$2" conv=notrunc 2>dd.log
}
for at in 3 9 16 40 70 300 450 600; do
	flip ssd/evp-index $at
	evp-show --check ssd | sed 's/([^)]*)/(WHY)/' | sort -u
	evp-load -q m.jsonl --payloads pay && cmp index ssd/evp-index || exit
done
truncate -s 500 ssd/evp-index
evp-load -q m.jsonl --payloads pay && cmp index ssd/evp-index || exit
rm ssd/evp-index
evp-load -q m.jsonl --payloads pay && cmp index ssd/evp-index || exit
# rows of the state are checked as they are read
change() { python3 -c 'import sqlite3, sys; c = sqlite3.connect("ssd/evp-state"); c.execute(sys.argv[1]); c.commit()' "$1"; }
for how in "UPDATE payload SET token_digest = 'z' WHERE number = 1" "UPDATE payload SET size = 0" \
	"UPDATE payload SET file = '../../etc/passwd'" "UPDATE payload SET namespace = 7 WHERE number = 1" "DROP TABLE payload" \
	"DELETE FROM store" "UPDATE store SET id = 'short'" "PRAGMA user_version = 4"; do
	change "$how"
	try
	cp state ssd/evp-state
done
# a checksum is compared with the payload with --verify; SQLite's own pages are by --check
change "UPDATE payload SET checksum = '0123456789abcdef' WHERE number = 2"
evp-load m.jsonl --payloads pay 2>&1 | sed "s|$PWD/||"
evp-load -q m.jsonl --payloads pay --verify 2>&1 | sed "s|$PWD/||; s|evp-payloads/.*'|FILE'|"
placed | cmp was - && evp-show --check ssd
change "DELETE FROM payload WHERE number = 1"
evp-load -q m.jsonl --payloads pay && placed | cmp was - && evp-show --check ssd
head -c 9000 state >ssd/evp-state; try
echo 'no database at all, but long enough to look at: it has more than a hundred bytes, as the header of one has' >ssd/evp-state; try
# the cure
rm ssd/evp-state*
evp-load -q m.jsonl --payloads pay || exit
placed | cmp was - && evp-show --check ssd
payloads ssd

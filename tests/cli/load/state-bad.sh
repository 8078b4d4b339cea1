# Damaged files of a store: an index is written again, a state is refused with its cure, a store of an earlier release too.
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
flip() { printf 'x' | dd of="$1" bs=1 seek="$2" conv=notrunc 2>dd.log; }
for at in 3 9 16 40 70 300 450 600; do
	flip ssd/evp-index $at
	evp-show --check ssd | sed 's/([^)]*)/(WHY)/' | sort -u
	evp-load -q m.jsonl --payloads pay && cmp index ssd/evp-index || exit
done
truncate -s 500 ssd/evp-index
evp-load -q m.jsonl --payloads pay && cmp index ssd/evp-index || exit
rm ssd/evp-index
evp-load -q m.jsonl --payloads pay && cmp index ssd/evp-index || exit
# every row of the state has a checksum, and the state has their sum
change() { python3 -c 'import sqlite3, sys; c = sqlite3.connect("ssd/evp-state"); c.execute(sys.argv[1]); c.commit()' "$1"; }
for how in "UPDATE payload SET checksum = '0123456789abcdef' WHERE number = 2" "DELETE FROM payload WHERE number = 2" \
	"UPDATE payload SET context = 'z' WHERE number = 1" "UPDATE namespace SET running = 1" "UPDATE store SET generation = 9" \
	"UPDATE payload SET file = '../../etc/passwd'" "UPDATE payload SET namespace = 7 WHERE number = 1" "DROP TABLE payload" \
	"UPDATE used SET bytes = bytes + 1" "DELETE FROM used" \
	"PRAGMA user_version = 7"; do
	change "$how"
	try
	cp state ssd/evp-state
done
head -c 9000 state >ssd/evp-state; try
echo 'no database at all, but long enough to look at: it has more than a hundred bytes, as the header of one has' >ssd/evp-state; try
# the cure
rm ssd/evp-state*
evp-load -q m.jsonl --payloads pay || exit
placed | cmp was - && evp-show --check ssd
payloads ssd
# of version 3, then of versions 2 and 1: read as it is, and renewed by the next writer
for how in "DROP INDEX payload_object" "PRAGMA user_version = 3"; do change "$how"; done
evp-show --check ssd && evp-load -q m.jsonl --payloads pay || exit
for how in "DROP INDEX payload_object" "DROP TABLE part" "PRAGMA user_version = 2"; do change "$how"; done
evp-show --check ssd && evp-load -q m.jsonl --payloads pay || exit
for how in "DROP INDEX payload_object" "DROP TABLE part" "DROP TABLE used" "DROP INDEX payload_context" "DROP INDEX payload_unseen" "PRAGMA user_version = 1"; do change "$how"; done
evp-show --check ssd && evp-load -q m.jsonl --payloads pay || exit
placed | cmp was - && evp-show --check ssd
change "UPDATE used SET bytes = bytes + 1"; try
# of an earlier release
rm -r ssd && mkdir -m 700 ssd && echo '{"evp":"index","version":1}' >ssd/evp-index
try

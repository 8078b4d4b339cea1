# A state that is lost, or brought back from a backup, leaves no file behind that nobody names. One that lies elsewhere is
# in a folder of the user's own, and another one's is not taken for it.
. "$TOP/tests/cli/load/plans.inc"
try() {
	evp-load -q "$1.jsonl" --payloads pay 2>said
	echo "status $?"
	sed "s|$PWD/||g; s/user [0-9]*/user N/g" said
}
# nameless: files in the tiers that their states do not name
nameless() {
	python3 - <<-'END'
		import glob, sqlite3
		for t in "dram", "ssd":
		    named = {f"{t}/{f}" for (f,) in sqlite3.connect(f"{t}/evp-state").execute("SELECT file FROM payload")}
		    print(t, len(named), len(set(glob.glob(f"{t}/evp-payloads/*/*")) ^ named))
	END
}
first_plan m
second_plan n
try m
mkdir backup && cp dram/evp-state backup/dram && cp ssd/evp-state backup/ssd
rm dram/evp-state ssd/evp-state dram/evp-index
evp-load -q n.jsonl --payloads pay --dry-run 2>&1 | grep warning # what it then lists does not know these payloads
try n
nameless
placed
cp backup/dram dram/evp-state && cp backup/ssd ssd/evp-state
try m
nameless
placed
# elsewhere
elsewhere() {
	printf 'tier ssd file %s/ssd,%s/%s 100000\ncontext a1 100 none ssd\n' "$PWD" "$PWD" "$1" | "$BUILD/tests/tools/make-load" "$1.jsonl" pay
}
rm -r dram ssd
elsewhere here
mkdir here && chmod 777 here; try here
rmdir here; try here
stat -c '%a %n' here here/evp-state
elsewhere there; try there
try here
rm ssd/evp-index; try there
rm -r there; rm ssd/evp-index
try here
rows ssd; evp-show --check ssd
[ "$(id -u)" = 0 ] || skip "only root can give a folder away"
chown nobody here; try here

# Looking needs no write access: where the folder is read-only, evp-show, --check and a dry run work as ever; who may not
# read the state sees what the index says.
. "$TOP/tests/cli/load/plans.inc"
[ "$(id -u)" = 0 ] || skip "only root can become another user"
first_plan m
evp-load -q m.jsonl --payloads pay --group nogroup || exit
second_plan m
chmod 711 . && mkdir bin && install -m 755 "$BUILD/evp-show" "$BUILD/evp-load" bin && chmod -R go+rX pay m.jsonl
nobody() { setpriv --reuid nobody --regid nogroup --clear-groups "$@" 2>&1 | sed "s|$PWD/||g; s/[0-9a-f]\{60,\}/DIGEST/g"; }
echo "a member of the group:"
nobody bin/evp-show --json ssd
nobody bin/evp-show --check ssd
echo "the owner of folders that are read-only:"
chown -R nobody dram ssd && chmod 500 dram ssd
nobody bin/evp-show --check dram ssd
nobody bin/evp-show --json ssd | grep -o '"context"' | wc -l
nobody bin/evp-load -q --dry-run m.jsonl --payloads=pay | cut -c 1-60
nobody bin/evp-load -q m.jsonl --payloads=pay
ls ssd
echo "with the log of a killed writer:"
chmod 700 ssd
/usr/bin/python3 - <<-'END'
	import os, sqlite3
	if os.fork() == 0:
	    state = sqlite3.connect("ssd/evp-state")
	    state.execute("UPDATE namespace SET manifest_name = 'from the log'")
	    state.commit()
	    os.kill(os.getpid(), 9)
	os.wait()
END
chown nobody ssd/evp-state-* && chmod 500 ssd
nobody bin/evp-show --json ssd | grep -o 'from the log'

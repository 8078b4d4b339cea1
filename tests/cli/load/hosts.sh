# One host fills a folder that ten others read, each in a mount namespace of its own, with the folder at another path, read-only,
# and beside a DRAM tier of its own. While the first loads one plan after the other, the others find and fetch without an error,
# and their own loads and changes leave the folder alone.
. "$TOP/tests/cli/load/python.inc"
. "$TOP/tests/cli/load/plans.inc"
[ "$python" ] || skip "a sanitizer must be linked into every program"
[ "$(id -u)" = 0 ] && unshare -m true 2>unshare.log || skip "cannot mount folders: $(cat unshare.log)"
spec() {
	printf 'tier dram dram %s 200000\ntier nfs file %s,%s 300000\n' "$PWD/dram" "$PWD/shared" "$PWD/state"
	printf '%s\n' a b c d e f g h i j k l m n o p q r s t | sed "s/.*/context &1 40 none nfs/; 1,${1}s/nfs/dram/"
}
spec 1 | "$BUILD/tests/tools/make-load" one.jsonl pay
spec 10 | "$BUILD/tests/tools/make-load" two.jsonl pay
evp-load -q one.jsonl --payloads pay || exit
cat >reader.py <<'END'
import evp, json, os, sys, time
plan, host, payloads = sys.argv[1:]
n = errors = stale = 0
with evp.open(plan) as store:
    print(host, "reads" if not store.tiers()[1].code else store.tiers()[1].text)
    try:
        store.put("a1", "nfs", open(payloads, "rb").read())
    except evp.Error as e:
        print(host, "put:", e)
    store.put("a1", "dram", open(payloads, "rb").read())
    open(f"{host}/ready", "w").close()
    end = time.monotonic() + 60
    while not os.path.exists("stop") and time.monotonic() < end:
        time.sleep(0.005)
        store.refresh()
        for letter in "bcdefghijklmnopqrst":
            found = store.find([1000 * ord(letter) + k for k in range(40)])
            if found:
                try:
                    store.fetch(found)
                    n += found.tier == "nfs"
                except evp.Error as e:
                    if e.code != -4:
                        errors += 1
                        print(host, e)
print(host, "fetched" if n > 100 else n, errors, "errors")
END
for host in 1 2 3 4 5 6 7 8 9 10; do
	mkdir -p host$host/nfs host$host/dram
	sed "s|$PWD/shared|$PWD/host$host/nfs|; s|$PWD/dram|$PWD/host$host/dram|; s|\"state\":\"[^\"]*\"|\"access\":\"read\"|" one.jsonl >host$host/m.jsonl
	unshare -m sh -c "mount --bind shared host$host/nfs && mount -o remount,bind,ro host$host/nfs && evp-load -q host$host/m.jsonl --payloads pay && exec '$python' reader.py host$host/m.jsonl host$host '$(ls pay/a1-* | head -n 1)'" >host$host/said 2>&1 &
	readers="$readers $!"
done
for i in 1 2 3 4 5 6 7 8 9 10; do until [ -e host$i/ready ] || ! kill -0 $! 2>>kill.log; do sleep 0.05; done; done
for i in 1 2 3 4; do
	for plan in two one; do
		cp $plan.jsonl m.jsonl && evp-load -q m.jsonl --payloads pay || echo "load: $?"
	done
done
: >stop
wait $readers
cat host*/said | sed 's/^host[0-9]* //' | sort | uniq -c
evp-show --check dram

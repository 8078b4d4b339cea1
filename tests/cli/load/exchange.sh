# Two full tiers exchange all of their payloads, without a payload folder, and back: a process that refreshes all the time finds
# every context in every moment.
. "$TOP/tests/cli/load/python.inc"
. "$TOP/tests/cli/load/plans.inc"
contexts() {
	for letter in a b c d e f g h i j k l m n o p q r s t; do seq 4 2 18 | sed "s/.*/$letter& & none $1/; n; s/.*/$letter& & none $2/"; done
}
contexts dram ssd >one.spec
contexts ssd dram >two.spec
bytes() { awk -v tier="$2" '$4 == tier { n += 256 * $2 } END { print n }' "$1"; }
dram=$(printf '%s\n' "$(bytes one.spec dram)" "$(bytes two.spec dram)" | sort -n | tail -n 1)
ssd=$(printf '%s\n' "$(bytes one.spec ssd)" "$(bytes two.spec ssd)" | sort -n | tail -n 1)
plan one "$dram" "$ssd" <one.spec
plan two "$dram" "$ssd" <two.spec
evp-load -q one.jsonl --payloads pay || exit
rm pay/*
placed | sort -k 2 >one
cp one.jsonl m.jsonl
[ ! "$python" ] || "$python" - <<'END' >found 2>&1 &
import evp, os
missed = rounds = 0
with evp.open("m.jsonl") as store:
    open("ready", "w").close()
    while not os.path.exists("stop") and rounds < 100000:
        rounds += 1
        store.refresh()
        for letter in "abcdefghijklmnopqrst":
            for n in range(4, 19, 2):
                found = store.find([1000 * ord(letter) + i for i in range(n)])
                missed += not found or found.n_tokens != n
print(missed, "missed" if rounds > 1 else "too fast")
END
[ ! "$python" ] || until [ -e ready ]; do sleep 0.05; done
evp-load -q two.jsonl || exit
placed | sort -k 2 >two
evp-show --check dram ssd
diff one two | grep -c '^<'
evp-load -q --rollback two.jsonl || exit
placed | sort -k 2 | cmp one -
evp-load -q two.jsonl && placed | sort -k 2 | cmp two -
: >stop
wait
[ "$python" ] && cat found || echo "0 missed"

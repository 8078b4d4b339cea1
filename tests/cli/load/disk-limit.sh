# A disk with exactly the blocks that a store, a payload, its name and its row need, with one less, and with one more.
mkdir small
mount -t tmpfs -o size=64k tmpfs small 2>mount.log || skip "cannot mount a small disk: $(cat mount.log)"
umount small
printf 'tier small file %s -\ncontext a1 100 none small\n' "$PWD/small/tier" | "$BUILD/tests/tools/make-load" m.jsonl pay
blocks=$((64 + $(stat -c %s pay/a1-*) / 4096 + 3))
for off in -1 0 1; do
	mount -t tmpfs -o size=$(((blocks + off) * 4096)) tmpfs small
	evp-load -q m.jsonl --payloads pay --dry-run
	echo "$off: status $?"
	umount small
done
# a real load has taken some of what the store needs before it looks
mount -t tmpfs -o size=$(((blocks + 40) * 4096)) tmpfs small
evp-load -q m.jsonl --payloads pay
echo "status $?"
umount small

# evp-nightly, when a disk is full or read-only.
[ "$(id -u)" = 0 ] && unshare -m true 2>unshare.log || skip "cannot mount disks: $(cat unshare.log)"
[ "$NIGHT_UNSHARED" ] || NIGHT_UNSHARED=1 exec unshare -m sh -c '. "$SKIP"; . "$1"' sh "$TOP/tests/cli/night/disks.sh"
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
nights 3

# small FOLDER SIZE: puts what is in the folder on a disk of this size.
small() {
	mv "$1" moved && mkdir "$1" && mount -t tmpfs -o "size=$2" tmpfs "$1" && cp -a moved/. "$1" && rm -r moved
}
fault_tier_full() {
	small world/disk 2m
	head -c 10000000 /dev/zero >world/disk/big 2>full.log
	true
}
cure_tier_full() { rm world/disk/big; }
fault_payloads_full() { rm world/payloads/* && small world/payloads 64k; }
cure_payloads_full() { umount world/payloads; }
fault_tier_read_only() { mount --bind world/disk world/disk && mount -o remount,ro,bind world/disk; }
cure_tier_read_only() { umount world/disk; }

fault tier_full ssd
umount world/disk
fault payloads_full section7
fault tier_read_only ssd section3 # which stays on it, and is found there

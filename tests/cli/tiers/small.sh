# A disk of 1 MiB: its free bytes as capacity, and one byte more; probes that are rounded down to what fits, or are not.
mkdir d
mount -t tmpfs -o size=1m tmpfs d 2>mount.log || skip "cannot mount a small disk: $(cat mount.log)"
for capacity in 1048575 1048576 1048577; do
	evp-tiers -q --tier name=a,uri=d,capacity=$capacity,read=1G,write=1G,latency=0 >/dev/null
done
for probe in 0 1 1048575 1048576 2097151 2097152; do
	evp-tiers -q --probe $probe --tier name=a,uri=d >/dev/null
	echo "$probe: status $?"
done
ls -A d
umount d

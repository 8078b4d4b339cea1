# Names, the number of tiers, and when a tier is said to be faster than the one before it: at the limit and beyond.
numbers=read=1G,write=1G,latency=0
name=abcdefghijklmnopqrstuvwxyz01234 # 31 letters
evp-tiers -q --tier name=$name,uri=redis://a,$numbers | grep -o '"name":"[^"]*"'
evp-tiers -q --tier name=${name}5,uri=redis://a,$numbers
echo "status $?"
for n in 64 65; do
	set --
	for i in $(seq $n); do set -- "$@" --tier name=t$i,uri=redis://a,$numbers; done
	evp-tiers -q "$@" | grep -o '"name"' | wc -l
done
for read in 1500 1501; do
	evp-tiers -q --tier name=a,uri=redis://a,read=1000,write=1,latency=0 --tier name=b,uri=redis://b,read=$read,write=1,latency=0 >/dev/null
done
# the largest capacity but one is a number, the largest is unlimited, and above it nothing is
for capacity in 9223372036854775806 9223372036854775807 9223372036854775808 0; do
	evp-tiers -q --tier name=a,uri=redis://a,capacity=$capacity,$numbers | grep -o '"capacity_bytes":[^,]*'
done

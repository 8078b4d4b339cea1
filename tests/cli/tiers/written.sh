# How sizes, shares, times and blanks may be written; whole paths; pools and configs; tiers that are not measured.
mkdir d
figures=read=1GB,write=1GiB,latency=1ms
values() { evp-tiers -q "$@" -o t.json && grep -o '"\(uri\|pool\|capacity_bytes\|read_bytes_per_s\|write_bytes_per_s\|latency_s\)":[^,}]*\|"configs":[^]]*]' t.json | sed "s#$PWD#HERE#"; }
values --tier "name = a, uri = d, capacity = 2 GB, read = 1gib, write=512MB ,latency = 20 us"
values --tier name=a,uri=d,capacity=2GB,read=1gib,write=512MB,latency=20us
values --tier name=a,uri=./d/../d,capacity=1.5GiB,$figures,pool=disk,configs=none/kivi:bits=4
values --tier name=l,uri=lm://cache:65432,kind=lmcache,$figures --tier name=r,uri=redis://r,latency=5ns,read=1G,write=1G
evp-tiers -q --tier name=a,uri=d,capacity=100%,$figures --tier name=b,uri=d,capacity=25%,$figures | python3 -c '
import json, os, sys
free = os.statvfs("d").f_bavail * os.statvfs("d").f_frsize
for t, share in zip(json.load(sys.stdin)["tiers"], (1, 0.25)):
    print("share", abs(t["capacity_bytes"] / free - share) < 0.02)'
refuse() { evp-tiers -q "$@"; echo $?; }
refuse --tier name=a,uri=d,capacity=0%,$figures
refuse --tier name=a,uri=d,capacity=101%,$figures
refuse --tier name=a,uri=redis://r,capacity=80%,$figures
refuse --tier name=a,uri=d,capacity=1G,pool=p,$figures --tier name=b,uri=d,capacity=2G,pool=p,$figures
refuse --tier name=a,uri=d,pool=a.b,$figures
refuse --tier name=a,uri=d,configs=//,$figures
refuse --tier name=a,uri=d,latency=1,read=1,write=1,latency=2

# More capacity than the file system has free.
mkdir d
evp-tiers --tier name=a,uri=d,capacity=9000T,read=1G,write=1G,latency=0 >/dev/null

# Each wrong --tier, its status and its sentence.
refuse() { evp-tiers "$@"; echo $?; }
refuse
refuse --tier name=a
refuse --tier uri=/tmp
refuse --tier name=a,uri=/tmp,capacity=2Gbit
refuse --tier name=a,uri=/tmp,size=2G
refuse --tier name=a,name=b,uri=/tmp
refuse --tier name=recompute,uri=/tmp
refuse --tier name=a,uri=redis://b,read=1G
refuse --tier name=a,uri=/tmp,kind=tape
refuse --tier name=a,uri=redis://b,read=0,write=1,latency=1
refuse --tier name=a,uri=redis://b,read=1,write=1,latency="1 week"
refuse --tier name=a,uri=redis://b,read=1,write=1,latency=1 --tier name=a,uri=redis://c,read=1,write=1,latency=1
refuse --tier name=a,uri=$PWD/no/such
refuse --tier name=a,uri=$PWD/none,access=read,read=1G,latency=1ms
refuse --tier name=a,uri=/tmp,access=read,write=1G
touch file
refuse --tier name=a,uri=$PWD/file

# Nothing is measured: the numbers and their order are those given.
evp-tiers -q --tier name=far,uri=redis://cache:6379,capacity=1T,read=1G,write=512M,latency=0.002 \
          --tier name=vram,uri=cuda:0,kind=gpu,read=1T,write=1T,latency=0
mkdir theirs
evp-tiers -q --tier name=theirs,uri=theirs,access=read,read=1G,latency=1ms | sed "s,$PWD,HERE,"

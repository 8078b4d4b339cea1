# The bandwidth on to a GPU by name; without a GPU, and without a name, none is written. A GPU's own tier has none.
tier() { evp-tiers "$@" --tier name=vram,uri=cuda:0,kind=gpu,read=1T,write=1T,latency=0 --tier name=far,uri=redis://cache:6379,read=100G,write=1G,latency=0; }
tier -q | grep -c device_bytes_per_s
tier --gpu a100 2>&1 >tiers.json | grep 'to the GPU'
grep -o '"name":"[a-z]*"\|"device[^,}]*' tiers.json
tier -q --gpu B9000

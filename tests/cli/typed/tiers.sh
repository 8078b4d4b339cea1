# Tiers as newcomers type them, and tiers that evp-load does not fill.
. "$TOP/tests/cli/typed/said.inc"
mkdir here
hand=read=1G,write=1G,latency=1ms
said evp-tiers dram=/dev/shm
said evp-tiers --tier /dev/shm/x
said evp-tiers --tier name=a,path=/dev/shm/x
said evp-tiers --tier name=a,size=1G
said evp-tiers --tier name=a,uri=relative/dir
said evp-tiers --tier name=a,uri=/nonexistent/a/b
said evp-tiers --tier name=a,uri=s3://bucket
said evp-tiers --tier name=a,uri=lm://host,kind=lmcache,$hand -o lm.json
said evp-plan table.h5 --tiers lm.json -o m.jsonl
evp-plan table.h5 --tiers lm.json 2>&1 >m.jsonl | grep warning
evp-tiers --tier "name=a, uri=here, capacity = 2 M, $hand" 2>/dev/null | sed 's/.*\("capacity_bytes":[0-9]*\).*/\1/'

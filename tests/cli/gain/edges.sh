# One request, equal requests, no cache, a cache smaller than a block; requests without times; rotated logs in any order;
# standard input and compressed logs; a long line.
command -v python3 >/dev/null || skip "python3 is not installed"
gain() { evp-gain --hbm 0 "$@" --model synthetic:tiny --gpu L4 | grep -v '^  \(gpu\|model\|kv\|bytes\|computing\|reading\|prompts\) \|: gain$'; }
python3 - <<'END'
import json
def put(name, rows):
    with open(name, "w") as f:
        for time, prompt in rows:
            f.write(json.dumps({"prompt": prompt} | ({"time": time} if time is not None else {})) + "\n")
a, b = "a" * 1000, "a" * 700 + "b" * 300
put("one", [(1.7e9, a)])
put("equal", [(1.7e9 + i, a) for i in range(4)])
put("timeless", [(None, a), (None, b), (None, a)])
put("partly", [(None, a), (1.7e9, b), (None, a), (1.7e9 + 8, b)])
put("log", [(1.7e9 + 20, a), (1.7e9 + 30, b)])
put("log.1", [(1.7e9 + 10, b), (1.7e9 + 11, a * 3)])
put("log.2", [(1.7e9, a), (1.7e9 + 5, "c" * 2000)])
put("long", [(1.7e9, "x" * 30_000_000), (1.7e9 + 1, "x" * 30_000_000)])
END
for log in one equal; do
    echo "-- $log"
    gain $log -q --dram 1M
done
echo "-- no cache, and less than a block (64 KiB)"
gain equal --dram 0
gain equal -q --dram 60K | grep -c 'LRU.*0.000  0.000     1.000'
echo "-- without times"
gain timeless --dram 1M
gain partly --dram 1M
gain log log.1 log.2 -q --dram 256K --ssd 1M >rotated
cat log.2 log.1 log | gain - -q --dram 256K --ssd 1M | cmp rotated - && echo "any order"
gzip log.1 && gain log.2 log log.1.gz -q --dram 256K --ssd 1M | cmp rotated - && echo "compressed"
gain long -q --dram 64G | grep 'requests\|again'
echo "-- more than GPU and SSD can do"
for i in 1 2 3 4; do
    echo "{\"timestamp\": $i, \"input_length\": 102400, \"hash_ids\": [$(seq -s , 200)]}"
done >busy
evp-gain busy --model synthetic:llama-3.1-8b --gpu L4 --gpus 1 --ssd 1T --ssd-read 1M 2>&1 | grep 'warning'

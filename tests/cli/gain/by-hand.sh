# Four requests of a trace, and of texts, whose hits in every cache and whose times are worked out by hand.
command -v python3 >/dev/null || skip "python3 is not installed"
cat >trace.jsonl <<'END'
{"timestamp": 0, "input_length": 1536, "output_length": 9, "hash_ids": [1, 2, 3]}
{"timestamp": 1000, "input_length": 1536, "output_length": 9, "hash_ids": [1, 2, 4]}
{"timestamp": 2000, "input_length": 1536, "output_length": 9, "hash_ids": [1, 2, 3]}
{"timestamp": 3000, "input_length": 100, "output_length": 9, "hash_ids": [5]}
END
gain() { evp-gain -q --model synthetic:llama-3.1-8b --gpu H100 "$@"; }
free="--hbm 0 --ssd-write 1000000T" # no GPU memory, and writing takes no time
# 128 KiB a token, so 64 MiB a block of the trace: one block in DRAM, three on SSD.
gain trace.jsonl $free --dram 64M --ssd 192M
gain trace.jsonl $free --dram 64M --ssd 192M --json >trace.json
gain trace.jsonl --ssd-write 1000000T --hbm 128M --dram 64M --ssd 128M --json >hbm.json
block() { echo "{\"timestamp\": $1, \"input_length\": 512, \"hash_ids\": [$2]}"; }
{ block 0 1; block 100 2; block 200 3; block 10000 1; block 10100 2; } >writes.jsonl
gain writes.jsonl --hbm 0 --ssd 1G --ssd-write 64M --json >writes.json
cat >check.py <<'END'
import json, sys
flop = .5 * 989e12
token = 2 * 32 * (4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 14336) / flop
pair = 4 * 32 * 4096 / flop
MEMORY = .8 * 3.35e12
dram, ssd = 131072 / (.8 * 64e9), 131072 / (.8 * 6.5e9)
def prefill(n, found):
    found = min(found, n - 1)
    return sum(token + i * pair for i in range(found, n)) + (n - found) * pair / 2
def near(a, b): return abs(a - b) <= 1e-9 * abs(b)
g = json.load(open("trace.json"))
assert g["prompt_tokens"] == 4708 and g["n_requests"] == 4 and near(g["share_that_comes_again"], 2560 / 4708)
assert g["kv_of_distinct_blocks_bytes"] == 5 * 64 << 20 and g["kv_of_all_prompts_bytes"] == 4708 * 131072
assert near(g["computing_1000_tokens_s"], 1000 * token) and g["span_s"] == 3 and g["n_gpus"] == 1
# found in DRAM and on SSD by the second and the third request; of a prompt that is there whole one token is computed
found = {"none": [(0, 0), (0, 0)], "GPU memory alone": [(0, 0), (0, 0)], 1: [(512, 512), (512, 1024)], 2: [(1024, 0), (1024, 512)], 3: [(1024, 0), (1024, 512)],
         10: [(1024, 0), (1536, 0)], "without bounds": [(1024, 0), (1536, 0)]}
for c in g["caches"]:
    hits = [(0, 0)] + found[c["compression_x"] or c["cache"]] + [(0, 0)]
    n, factor = [1536, 1536, 1536, 100], c["compression_x"] or 1
    computed = sum(n) - sum(map(sum, hits))
    assert near(c["dram"], sum(h[0] for h in hits) / 4708) and near(c["ssd"], sum(h[1] for h in hits) / 4708), c
    assert near(c["computed"], computed / 4708), c
    # what is compressed is read and written whole once more, in the GPU's memory
    unpack = sum(sum(h) for h in hits) * 131072 * (1 + 1 / factor) / MEMORY if factor > 1 else 0
    busy = sum(prefill(m, sum(h)) for m, h in zip(n, hits)) + unpack
    reading = sum(h[1] for h in hits) * ssd / factor
    waits = sum(max(h[0] * dram, h[1] * ssd) for h in hits) / factor  # for both tiers at the same time
    near9 = lambda a, b: abs(a - b) <= 1e-8  # whole nanoseconds
    assert near9(c["prefill_s"], busy), (c, busy)
    assert c["cache"] == "none" or near9(c["saved_s"], sum(prefill(m, 0) for m in n) - c["prefill_s"])
    assert near9(c["gpus_busy"], busy / 3) and near9(c["ssd_busy"], reading / 3) and near9(c["ttft_s"], (busy + waits) / 4), c
print("trace: as by hand")
# Two blocks in the memory of the GPU, which stay uncompressed and are read in no time, one in DRAM, two on SSD.
found = {"none": [(0, 0, 0)] * 2, "GPU memory alone": [(1024, 0, 0)] * 2, 1: [(1024, 0, 0), (1024, 0, 512)],
         10: [(1024, 0, 0), (1024, 512, 0)], "without bounds": [(1024, 0, 0), (1024, 512, 0)]}
hbm = json.load(open("hbm.json"))["caches"]
for c in hbm:
    hits = found.get(c["compression_x"] or c["cache"])
    if hits:
        assert [near(c[t], sum(h[i] for h in hits) / 4708) for i, t in enumerate(("hbm", "dram", "ssd"))] == [True] * 3, c
alone = hbm[1]
assert near9(alone["prefill_s"], prefill(1536, 0) + 2 * prefill(1536, 1024) + prefill(100, 0)) and alone["saved_s"] == 0
assert near9(alone["ttft_s"], alone["prefill_s"] / 4) and hbm[0]["saved_s"] is None
assert all(near9(c["saved_s"], alone["prefill_s"] - c["prefill_s"]) for c in hbm[1:])
# A queue of one second holds one block: of three that come at once one is written.
c = json.load(open("writes.json"))["caches"][2]
assert near(c["ssd"], 512 / 2560) and c["writes_dropped_bytes"] == 2 * 64 << 20 and near(c["computed"], 1 - c["ssd"]), c
print("GPU memory, and writes: as by hand")
# Texts: 2 bytes of role and 1022 of text are four blocks of 256, of which the last is no part of a cache. 4 bytes a token.
text = "".join(chr(97 + i // 256) * 1 for i in range(1022))
with open("log.jsonl", "w") as f:
    for t, p in (0, text), (9, text[:600] + "x" * 422), (10, text), (20, "short"):
        f.write(json.dumps({"created": 1.7e9 + t, "model": "m", "prompt": p}) + "\n")
END
python3 check.py
# 64 tokens a block, 8 MiB; 2 blocks in DRAM: the second request finds two, the third two of three
gain log.jsonl $free --dram 16M --json >log.json
python3 - <<'END'
import json
g = json.load(open("log.json"))
total = 3 * 1024 + 7
assert g["prompt_tokens"] == int(total / 4) and g["n_requests"] == 4 and g["bytes_of_text_per_token"] == 4
assert g["kv_of_distinct_blocks_bytes"] == 4 * 8 << 20 and g["n_prompts_tokenised"] == 0
print([round(c["dram"] * total) for c in g["caches"]], [round(c["computed"] * total) for c in g["caches"]], g["span_s"])
END

# Two folders, one that exists and one that is made for the measurement; the file has every member.
mkdir there
evp-tiers --probe 2M --tier name=a,uri=$PWD/there,capacity=1M --tier name=b,uri=$PWD/made,kind=dram,read=7G -o tiers.json
test ! -e made || echo "the folder made for measuring stayed"
test -z "$(ls -A there)" || echo "a file stayed"
python3 - <<'END'
import json
d = json.load(open("tiers.json"))
a, b = d["tiers"]
print(d["evp"], d["version"], a["name"], a["capacity_bytes"], b["name"], b["kind"], b["capacity_bytes"], b["read_bytes_per_s"])
for t in a, b:
    for key in "read_bytes_per_s", "write_bytes_per_s", "latency_s":
        assert t[key] > 0, t
END

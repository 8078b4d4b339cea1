# --parallel: several reads at once are measured where a bandwidth is, and evp-plan reads what was written.
mkdir there
evp-tiers --probe 1M --parallel 1,2,5 --tier name=a,uri=there --tier name=b,uri=there/,read=7G -o tiers.json 2>said || cat said
grep -c 'a  *[25] reads at once: .*together' said
test -z "$(ls -A there)" || echo "a file stayed"
python3 - <<'END'
import json
a, b = json.load(open("tiers.json"))["tiers"]
print([m["reads"] for m in a["parallel"]], "parallel" in b, "parallel_reads" in a, "read_spread" in b)
assert all(m["bytes_per_s"] > 0 and 0 <= m.get("spread", 0) < 1000 for m in a["parallel"]), a
END
cp "$DATA/table.h5" .
evp-plan -q table.h5 --tiers tiers.json --parallel-reads 3 -o m.jsonl && evp-plan -q table.h5 --verify m.jsonl && echo planned
head -n 1 m.jsonl | grep -o '"parallel_reads":3' | wc -l
evp-tiers -q --probe 1M --parallel 1 --tier name=a,uri=there | grep -c parallel
refuse() { evp-tiers -q --probe 1M --tier name=a,uri=there --parallel "$1"; echo $?; }
for list in 0 2,2 4,1 1.5 257 x 1,,2 "$(seq -s, 2 18)"; do refuse "$list"; done

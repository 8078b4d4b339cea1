# evp_write_metrics(): processes write into one folder, each with its own counts, and evp-show adds them up.
. "$TOP/tests/cli/load/plans.inc"
. "$TOP/tests/cli/load/python.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
mkdir node
"$python" "$TOP/tests/cli/load/python_metrics.py" m.jsonl node || exit
ls -A node
grep -oh '^evp_[a-z_]*' node/*.prom | sort -u >written
grep -o '^| `evp_[a-z_]*' "$TOP/docs/formats/metrics.md" | cut -c 4- | sort | diff - written || echo "docs/formats/metrics.md lists other names"
evp-show --metrics node --json >sums.json
"$python" -c '
import json
d = json.load(open("sums.json"))
print({k: v for k, v in d.items() if not isinstance(v, list)}, d["errors"], d["configs"])
for t in d["tiers"]:
    print({k: v for k, v in t.items() if not k.startswith(("time", "mean", "rate"))}, t["reads"] == 0 or t["time_s"] > 0)'

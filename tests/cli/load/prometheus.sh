# The files of evp_write_metrics() are what Prometheus's own parser for Python takes, with the sums that evp-show gives.
. "$TOP/tests/cli/load/plans.inc"
. "$TOP/tests/cli/load/python.inc"
"$python" -c 'import prometheus_client' 2>/dev/null || skip "prometheus_client is not installed"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
mkdir node
"$python" "$TOP/tests/cli/load/python_metrics.py" m.jsonl node || exit
evp-show --metrics node --json >sums.json || exit
"$python" - <<'END'
import glob, json
from prometheus_client.parser import text_string_to_metric_families

sums, series = {}, set()
for file in glob.glob("node/*.prom"):
    for family in text_string_to_metric_families(open(file).read()):
        assert family.documentation and family.type == ("gauge" if family.name.startswith("evp_placed") else "counter")
        for s in family.samples:
            assert s.labels["process"] == file[5:-5], s
            series.add((s.name, *s.labels.items()))
            sums.setdefault(s.name, []).append(s.value)
assert len(series) == sum(map(len, sums.values())), "two lines have the same name and labels"
shown = json.load(open("sums.json"))
tiers = shown["tiers"]
assert sum(sums["evp_finds_total"]) == shown["finds"] and sum(sums["evp_hit_tokens_total"]) == shown["tokens_hit"]
assert sum(sums["evp_read_bytes_total"]) == sum(t["read_bytes"] for t in tiers)
assert abs(sum(sums["evp_read_seconds_total"]) - sum(t["time_s"] for t in tiers)) < 1e-12
print(len(sums), "names")
END

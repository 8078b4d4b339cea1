# The alerts, and the queries of the dashboard, are such to Prometheus.
command -v promtool >where || skip "promtool is not installed: queries are not parsed; scripts/setup nightly installs it"
python3 - "$TOP/contrib/monitoring/dashboard.json" >rules.yml <<'END'
import json, sys
rules = [t["expr"] for p in json.load(open(sys.argv[1]))["panels"] for t in p.get("targets", ())]
print(json.dumps({"groups": [{"name": "g", "rules": [{"record": f"r{i}", "expr": e} for i, e in enumerate(rules)]}]}))
END
for f in rules.yml "$TOP/contrib/monitoring/alerts.yml"; do promtool check rules "$f" >said 2>&1 || cat said; done

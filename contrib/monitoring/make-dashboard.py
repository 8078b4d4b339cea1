#!/usr/bin/env python3
"""make-dashboard.py >dashboard.json - the dashboard for Grafana: a panel for each row below, and the variable `datasource`."""
import json

PANELS = [  # title, unit, (expression, legend) of each line; a title alone begins a row
    ("Serving",),
    ("Share of prompt tokens found", "percentunit",
     ("sum(rate(evp_hit_tokens_total[5m])) / sum(rate(evp_asked_tokens_total[5m]))", "found")),
    ("Tokens found", "short", ("sum by (tier, config) (rate(evp_hit_tokens_total[5m]))", "{{tier}} {{config}}")),
    ("Finds, and those with a hit", "reqps", ("sum(rate(evp_finds_total[5m]))", "finds"),
     ("sum by (tier) (rate(evp_hits_total[5m]))", "hits {{tier}}")),
    ("Read", "Bps", ("sum by (tier) (rate(evp_read_bytes_total[5m]))", "{{tier}}")),
    ("Bandwidth of a read", "Bps",
     ("sum by (tier) (rate(evp_read_bytes_total[5m])) / sum by (tier) (rate(evp_read_seconds_total[5m]))", "{{tier}}")),
    ("Time of a read", "s",
     ("sum by (tier) (rate(evp_read_seconds_total[5m])) / sum by (tier) (rate(evp_reads_total[5m]))", "{{tier}}")),
    ("Size of a read, weighted by its bytes and by its time", "bytes",
     ("sum by (tier) (rate(evp_read_square_bytes_total[5m])) / sum by (tier) (rate(evp_read_bytes_total[5m]))", "{{tier}}"),
     ("sum by (tier) (rate(evp_read_byte_seconds_total[5m])) / sum by (tier) (rate(evp_read_seconds_total[5m]))",
      "{{tier}} by time")),
    ("Errors", "reqps", ("sum by (code) (rate(evp_errors_total[5m]))", "{{code}}")),
    ("What is placed",),
    ("Contexts", "short", ("max by (tier) (evp_placed_contexts)", "{{tier}}")),
    ("Bytes", "bytes", ("max by (tier) (evp_placed_bytes)", "{{tier}}")),
    ("Changes", "reqps", ("sum by (tier) (rate(evp_puts_total[5m]))", "put {{tier}}"),
     ("sum by (tier) (rate(evp_moves_total[5m]))", "moved to {{tier}}"),
     ("sum by (tier) (rate(evp_evictions_total[5m]))", "left {{tier}}"), ("sum(rate(evp_removes_total[5m]))", "removed")),
    ("Nights",),
    ("Hours since a plan", "h", ("(time() - evp_night_success_timestamp_seconds) / 3600", "last success"),
     ("(time() - evp_night_ended_timestamp_seconds) / 3600", "last end")),
    ("Exit status", "short", ("evp_night_status", "night"), ("evp_night_step_status", "{{step}}")),
    ("A night is at work; its plan is in force", "short", ("evp_night_running", "at work"), ("evp_night_planned", "planned")),
    ("Time of the steps", "s", ("evp_night_step_seconds", "{{step}}"),
     ("evp_night_ended_timestamp_seconds - evp_night_started_timestamp_seconds", "night")),
    ("Number of the night", "short", ("evp_night_number", "night")),
    ("What the plan promises", "short", ('evp_night_figure{step="plan",figure=~"quality|quality_test|ttft_s"}', "{{figure}}")),
    ("Contexts", "short", ('evp_night_figure{figure=~"contexts|contexts_later|contexts_left_out"}', "{{step}} {{figure}}")),
]

panels, x, y = [], 0, 0
for title, *rest in PANELS:
    place = {"h": 1, "w": 24, "x": 0, "y": y + 8} if not rest else {"h": 8, "w": 8, "x": x, "y": y}
    if not rest:
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "gridPos": place, "panels": [], "collapsed": False})
        x, y = 0, y + 9
        continue
    unit, *lines = rest
    source = {"type": "prometheus", "uid": "${datasource}"}
    panels.append({"id": len(panels) + 1, "type": "timeseries", "title": title, "datasource": source, "gridPos": place,
                   "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                   "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
                   "targets": [{"refId": chr(65 + i), "datasource": source, "expr": expression, "legendFormat": legend}
                               for i, (expression, legend) in enumerate(lines)]})
    x, y = (x + 8, y) if x < 16 else (0, y + 8)
print(json.dumps({"title": "EvicPress", "uid": "evicpress", "schemaVersion": 39, "version": 1, "editable": True, "tags": ["evicpress"],
                  "time": {"from": "now-24h", "to": "now"}, "refresh": "1m",
                  "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
                  "panels": panels}, indent=1))

# docs/models.md has the table of evp-show --models, and README the families that are profiled.
command -v python3 >/dev/null || skip "python3 is not installed"
evp-show --models --json >models.json
python3 - "$TOP" <<'PY'
import json, re, sys

models = json.load(open("models.json"))["models"]
rows = [f"| {m['family']} | {', '.join(f'`{t}`' for t in m['model_type'].split())} | "
        f"{'-' if m['gguf'] == '-' else ', '.join(f'`{t}`' for t in m['gguf'].split())} | {m['sized']} | {m['profiled']} | {m['served']} |"
        for m in models]
text = open(f"{sys.argv[1]}/docs/models.md").read()
have = re.search(r"\| family \|.*?\n\|[- |]*\n(.*?)\n\n", text, re.S)[1].split("\n")
for row in have:
    if row not in rows:
        print("not of evp-show --models:", row)
for row in rows:
    if row not in have:
        print("not in docs/models.md:", row)
assert have == rows or not print("another order")
assert all(m["profiled"] == m["packed"] >= m["served"] for m in models)
profiled = "; ".join(m["family"] for m in models if m["profiled"] == "yes")
if profiled not in open(f"{sys.argv[1]}/README.md").read():
    print("not in README.md:", profiled)
PY

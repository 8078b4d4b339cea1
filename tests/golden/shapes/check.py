"""check.py FILE... - the bytes that evp-show prints for each line's config.json, compared with those of the line."""
import json, os, subprocess, sys, tempfile

bad = 0
for path in sys.argv[1:]:
    rows = [json.loads(line) for line in open(path)]
    for row in rows:
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "config.json")
            with open(name, "w") as f:
                json.dump(row["config"], f)
            run = subprocess.run(["evp-show", "--json", name], capture_output=True, text=True)
        want = row.get("engine") or row["bytes"]
        said = json.loads(run.stdout) if run.returncode == 0 else {}
        got = [line["kv_bytes"] for line in said.get("sizes", [])]
        size = abs(said.get("parameters", 0) / row["parameters"] - 1) if "parameters" in row else 0
        if got != want or size > 0.03 or run.returncode:
            print(f"FAIL {row['name']}: {got} not {want}, {said.get('parameters')} parameters {run.stderr.strip()}")
            bad += 1
    print(f"ok {os.path.basename(path)}: {len(rows)} shapes" if not bad else f"FAIL {os.path.basename(path)}: {bad} of {len(rows)}")
sys.exit(bad > 0)

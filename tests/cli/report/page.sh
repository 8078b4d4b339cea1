# A report of a table, a manifest and a frontier: a strict parser reads it, its numbers are those of
# the files, and the same files in another order give the same bytes.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 30 10
evp-tiers -q --tier name=dram,uri=redis://a:1,capacity=100M,read=5G,write=5G,latency=0.0001 \
	--tier name=ssd,uri=redis://b:1,capacity=150M,read=1G,write=1G,latency=0.001 -o tiers.json
for i in $(seq 0 29); do echo "{\"context\":\"context/$i\",\"count\":$((40 - i))}"; done >access.jsonl
evp-plan -q table.h5 --tiers tiers.json --access access.jsonl --alpha 0.3,1,3,10 -o sweep
evp-report -q table.h5 sweep/manifest-3.jsonl sweep/frontier.tsv -o one.html
evp-report sweep/frontier.tsv sweep/manifest-3.jsonl table.h5 >two.html
cmp one.html two.html
PYTHONPATH=$TOP/tests/cli/report /usr/bin/python3 -B - <<'END'
import csv, json
import h5py, numpy as np
from page import page, text, SVG
p = page("one.html")
print(p.h1)
print(p.lede)
print(p.headings)
table = h5py.File("table.h5")
head, *rows, end = map(json.loads, open("sweep/manifest-3.jsonl"))
configs = [name.decode() for name in table["/configs/name"]]
train, test, size = (table[name][:].mean(axis=0) for name in ("/quality/train", "/quality/test", "/cells/size_frac"))

columns, shown = p.table("Configs")
print(columns)
at = {config: v for v, config in enumerate(configs)}
assert sorted(row[0] for row in shown) == sorted(configs)
assert [train[at[row[0]]] for row in shown] == sorted(train, reverse=True), "the best first"
for row in shown:
    v = at[row[0]]
    error = table["/quality/train"][:, v].std(ddof=1) / np.sqrt(30)
    assert row[1:4] == ["%.1f" % (100 * size[v]), "%.3f" % train[v] + (" \u00b1 %.3f" % error if error else ""), row[3]], (row, train[v], error)
    assert row[3].startswith("%.3f" % test[v]) and row[4] == "30 of 30"
    assert int(row[-1]) == sum(r["config"] == row[0] and r["tier"] != "recompute" for r in rows)

columns, shown = p.table("The plan and its baselines")
print(columns)
uses = sum(r["frequency"] for r in rows)
for row, total in zip(shown, head["totals"], strict=True):
    assert row[0] == total["name"]
    errors = ["" if not total[k] else " \u00b1 %.3f" % total[k] for k in ("quality_error", "quality_test_error")]
    assert row[1:4] == ["%.3f" % total["ttft_s"], "%.3f" % total["quality"] + errors[0], "%.3f" % total["quality_test"] + errors[1]], row
    assert abs(float(row[4].replace("\u2212", "-")) - total["utility"] / uses) < 0.006

columns, shown = p.table("Other alphas")
print(columns)
for row, alpha in zip(shown, csv.DictReader(open("sweep/frontier.tsv"), delimiter="\t"), strict=True):
    assert row == [alpha["alpha"], "%.1f" % (1000 * float(alpha["ttft_s"])), "%.3f" % float(alpha["quality"]),
                   "%.3f" % float(alpha["quality_test"]), "%.1f" % (100 * float(alpha["hits_recompute"]))], (row, alpha)

columns, shown = p.table("Contexts")
print(columns)
most = sorted(rows, key=lambda r: -r["frequency"])
assert [row[0] for row in shown] == [r["id"] for r in most]
for row, r in zip(shown, most):
    assert row[1:5] == [str(r["n_tokens"]), "%.1f" % r["frequency"], r["tier"], "-" if r["tier"] == "recompute" else r["config"]]
    assert row[6] == "%.3f" % r["quality"]
for t, (row, tier) in enumerate(zip(p.table("Tiers")[1], head["tiers"])):
    used = sum(r["bytes"] for r in rows if r["tier"] == tier["name"])
    assert row[0] == tier["name"] and row[2] == "%.0f %%" % (100 * used / tier["capacity_bytes"]), row

# Marks: each config in both figures of quality, each alpha and each total in the first one; the chosen have a ring.
marks = [len([m for m in svg.iter(SVG + "path") if "mark" in m.get("class")]) for svg in p.root.iter(SVG + "svg")
         if svg.get("aria-label")]
print("marks", marks)
rings = len([c for svg in p.root.iter(SVG + "svg") if svg.get("aria-label") for c in svg.iter(SVG + "circle")])
assert rings == 1 + len({r["config"] for r in rows if r["tier"] != "recompute"})
details = [d for d in p.root.iter("details") if d.find("summary/span") is not None]
assert len(details) == 30 and all(len(d.findall(".//tr[@class='chosen']")) == 1 for d in details)
print(text(p.root.find(".//pre")))
END

# Real LongBench rows: counts, ids, and that every text holds its document exactly, whatever was merged.
zip=$SHARED/datasets/longbench_subset.zip
[ -f "$zip" ] || skip "no $zip"
evp-import -q "$zip" >all.jsonl
evp-import -q <"$zip" | tail -n +2 >piped.jsonl
tail -n +2 all.jsonl | cmp - piped.jsonl
python3 - "$zip" all.jsonl <<'END'
import collections, json, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
rows = [json.loads(line) for name in archive.namelist() for line in archive.open(name)]
stream = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
contexts = stream[1:-1]
assert stream[0]["evp"] == "contexts" and stream[-1] == {"end": True, "rows": len(contexts)}
ids = {c["id"]: c for c in contexts}
assert len(ids) == len(contexts)
assert len(contexts) == len({(c["text"]) for c in contexts})
published = collections.Counter(r["dataset"] for r in rows)
print(len(rows), "rows of", len(published), "datasets,", len(contexts), "contexts")
by_document = {}
for r in rows:
    by_document.setdefault(r["context"], []).append(r)
for c in contexts:
    assert c["chars"] == len(c["text"])
    own = [r for r in rows if c["text"].endswith(r["context"]) and f'{r["dataset"]}/{r["_id"]}' == c["id"]]
    assert len(own) == 1, c["id"]
    document = own[0]["context"]
    assert c["text"].count(document) == 1 and len(c["text"]) > len(document)
    asked = [i["question"] for i in c["inputs"]]
    for r in by_document[document]:
        if r["input"]:
            assert r["input"] in asked, (c["id"], r["input"])
    assert len(asked) == len(set(asked)) > 0
    assert c["ask"].count("{question}") == 1
assert {q for c in contexts for i in c["inputs"] for q in [i["question"]]} >= {r["input"] for r in rows if r["input"]}
END

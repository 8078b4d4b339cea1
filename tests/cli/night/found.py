"""found.py MANIFEST IDS [BUT...] - prints each context that a manifest places, and libevicpress does not find and fetch there.

IDS is a folder with a file of token ids for each context. BUT: first words of contexts, or tiers; nothing is expected there.
"""
import json, sys

import evp

manifest, ids, *but = sys.argv[1:]


def look(store, row):
    tokens = [int(word) for word in open(f"{ids}/{row['id']}").read().split()]
    try:
        found = store.find(tokens + [1, 2, 3])
        if not found:
            return "is not found"
        store.fetch(found)
        there = found.tier, found.config, found.n_tokens
        return "" if there == (row["tier"], row["config"], row["n_tokens"]) else f"is {found}"
    except evp.Error as e:
        return str(e)


rows = [row for row in map(json.loads, open(manifest)) if row.get("payload")]
rows = [row for row in rows if row["tier"] not in but and row["id"].split("-")[0] not in but]
with evp.open(manifest) as store:
    for row in rows:
        said = look(store, row)
        if said:
            print(f"{row['id'].split('-')[0]} on {row['tier']}: {said}")
if not rows:
    print("nothing was expected")

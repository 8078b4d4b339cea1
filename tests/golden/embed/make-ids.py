#!/usr/bin/env python3
"""make-ids.py - writes minibert.jsonl beside it: texts with special tokens in them, and the ids that Hugging Face's
`tokenizers` gives them over the vocabulary of tests/data/minibert. Needs that package."""
import json, os
import reference

here = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["[SEP]", "[CLS]", "[MASK]", "[PAD]", "[UNK]", "[CLS] the cache [SEP]", "the[SEP]cache", "it[MASK]s", "##ing", "[SEP]ing",
         "[SEP][SEP][SEP]", "[CLS][SEP] [MASK]\n[PAD]\t[UNK]", "[sep] [Sep] [SEp]", "[SEP", "SEP]", "[[SEP]]", "[ SEP ]",
         "[SE\u0301P]", "[S\u00adEP]", "[\uff33EP]", "a[SEP]\u0301b", "e\u0301[SEP]e\u0301", "\u4e2d[SEP]\u4e2d", "[SEP]\u200b[SEP]",
         "x" * 100 + "[SEP]" + "x" * 101, "[MASK]" * 40, "[CLS]", "read.[SEP].back"]
rows = reference.ids(reference.from_vocab(here + "/../../data/minibert"), TEXTS)
with open(here + "/minibert.jsonl", "w") as f:
    for text, ids in zip(TEXTS, rows):
        f.write(json.dumps({"text": text, "ids": ids}) + "\n")

#!/usr/bin/env python3
"""make.py - write golden.json: what kvpress keeps of a short text, layer by layer and head by head. Run it with
kvpress, transformers and gguf installed and MODELS, EVP_HF_MODEL set as tests/golden/oracles does."""
import json, os, subprocess, sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from kvpress_sets import Oracle

CONFIGS = ["knorm:drop=0.1", "knorm:drop=0.5", "knorm:drop=0.9", "keydiff:drop=0.1", "keydiff:drop=0.5",
           "keydiff:drop=0.9", "snapkv:drop=0.1", "snapkv:drop=0.5", "snapkv:drop=0.9", "streamingllm:drop=0.9",
           "tova:drop=0.1", "tova:drop=0.5", "tova:drop=0.9", "h2o:drop=0.1", "h2o:drop=0.5", "h2o:drop=0.9",
           "lagkv:drop=0.5:lag=16", "lagkv:drop=0.9", "keydiff:drop=0.5:block=16", "keydiff:drop=0.9:block=64",
           "h2o:drop=0.1:recent=half", "h2o:drop=0.5:recent=half", "h2o:drop=0.9:recent=half", "cur:drop=0.1", "cur:drop=0.5",
           "cur:drop=0.9", "cur:drop=0.5:leverage=kv_avg:block=7:n_sink=0",
           "expected_attention:drop=0.1", "expected_attention:drop=0.5:epsilon=0.01", "expected_attention:drop=0.9",
           "adakv+expected_attention:drop=0.5:epsilon=0.01",
           "criticalkv+snapkv:drop=0.1:window=8", "criticalkv+snapkv:drop=0.5:window=8",
           "criticalkv:first_stage_ratio=0.8+snapkv:drop=0.9:window=8",
           "criticalkv+expected_attention:drop=0.5:use_vnorm=no",
           "pyramidkv:drop=0.5:window=8", "pyramidkv:drop=0.9", "adakv+snapkv:drop=0.1:window=16",
           "adakv+snapkv:drop=0.5:window=16", "adakv+snapkv:drop=0.9:window=16",
           "adakv:safeguard=0+snapkv:drop=0.5:window=16", "chunkkv+snapkv:drop=0.1:window=16",
           "chunkkv+snapkv:drop=0.5:window=16", "chunkkv+snapkv:drop=0.9:window=16", "chunkkv:length=7+knorm:drop=0.5",
           "kvzip:drop=0.1:prefix=kvpress", "kvzip:drop=0.5:prefix=kvpress",
           "kvzip:drop=0.9:prefix=kvpress", "kvzip:drop=0.5:prefix=kvpress:over=layer",
           "impress:load=0.05:chunk=8", "impress:load=0.25", "impress:load=0.5:chunk=4:probe=1",
           "impress:load=0.05:chunk=8:reorder=yes", "impress:load=0.25:reorder=yes", "impress:load=0.5:chunk=4:reorder=yes"]
TEXT = open("/usr/share/common-licenses/BSD").read()[:1100].rsplit(None, 1)[0]


def bits(positions):
    return format(sum(1 << p for p in positions), "x")


folder = subprocess.run([os.path.join(here, "..", "hf_model")], check=True, capture_output=True, text=True).stdout.strip()
oracle = Oracle(folder, TEXT, CONFIGS)
golden = {"text": TEXT, "ids": oracle.ids, "kept": {}}
for config in CONFIGS:
    sure, loose = oracle.kept(config)
    golden["kept"][config] = {"sure": [[bits(h) for h in layer] for layer in sure],
                              "loose": {f"{l}.{h}": bits(x) for l, layer in enumerate(loose) for h, x in enumerate(layer) if x}}
with open(os.path.join(here, "golden.json"), "w") as f:
    json.dump(golden, f, separators=(",", ":"))
    f.write("\n")

"""make.py - write the manifest and contexts beside it. Needs the package tokenizers and the default model's
tokenizer.json (tests/golden/hf_model), so that token digests are not our own."""
import hashlib, json, os, struct, subprocess, sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "golden", "methods"))
from tokenizers import Tokenizer
import packing

TEXTS = {"fox": ("keydiff:drop=0.5", "The quick brown fox jumps over the lazy dog, again and again, until the dog gets up. "),
         "ships": ("kivi:bits=4", "In 1805 twenty-seven British ships met thirty-three French and Spanish ones. "),
         "sums": ("none", "Two and two is four; three and three is six. ")}
HEAD = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\n")
folder = subprocess.run([os.path.join(here, "..", "..", "golden", "hf_model")], check=True, capture_output=True,
                        text=True).stdout.strip()
tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
tier = {"name": "dram", "kind": "dram", "uri": "/dev/shm/evp", "capacity_bytes": None, "read_bytes_per_s": 1e9,
        "write_bytes_per_s": 1e9, "latency_s": 0}
encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
rows, contexts = [], []
for id, (config, sentence) in TEXTS.items():
    text = (sentence * 3).strip()
    ids = packing.context_ids(encode, HEAD + text)
    stored = config != "none"
    rows.append({"id": id, "token_digest": hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest(),
                 "n_tokens": len(ids), "config": config, "tier": "dram" if stored else "recompute",
                 "bytes": packing.size(config, len(ids)) if stored else 0, "quality": 1, "quality_test": None,
                 "ttft_s": None, "utility": 0, "frequency": 1, "operation": "insert" if stored else "none",
                 "payload": id + ".safetensors" if stored else None})
    contexts.append({"id": id, "dataset": "", "text": text})
header = {"model_digest": packing.sha256_file(packing.GGUF), "alpha": 1, "tiers": [tier], "solver": "by hand",
          "objective": 0, "upper_bound": None, "gap": None, "previous": None, "table_digest": None}
for name, kind, head, lines in (("manifest", "manifest", header, rows), ("contexts", "contexts", {}, contexts)):
    with open(os.path.join(here, name + ".jsonl"), "w") as f:
        f.write(packing.stream(kind, head, lines))

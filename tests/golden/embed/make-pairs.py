#!/usr/bin/env python3
"""make-pairs.py - writes pairs.jsonl beside it: pairs of texts and the cosine that sentence-transformers gives them with
all-MiniLM-L6-v2 in f32. Answers as models give them, and what tokenizers stumble over."""
import json, os
from sentence_transformers import SentenceTransformer

here = os.path.dirname(os.path.abspath(__file__))
models = os.environ.get("EVP_MODELS") or os.path.expanduser("~/.cache/evp/models")
model = SentenceTransformer(models + "/all-MiniLM-L6-v2", device="cpu")
long = "The licensor grants a worldwide, royalty-free licence to copy the work; clause %d applies. "
pairs = [
    ("Paris", "paris"),
    ("Paris is the capital of France.", "The capital of France is Paris."),
    ("Paris is the capital of France.", "The answer is not given in the text."),
    ("The licence was granted in 1991.", "The licence was granted in 2007."),
    ("She moved to Berlin to study chemistry.", "He moved to Vienna to study music."),
    ("Yes.", "No."),
    ("", "An answer."),
    ("", "   \t\n"),
    ("unanswerable", "The passage does not say."),
    ("42", "forty-two"),
    ("The cache is read back from disk in 12.5 ms.", "Reading the cache from the SSD takes 12.5 milliseconds."),
    ("Caf\u00e9 M\u00fcller, Z\u00fcrich", "Cafe Muller, Zurich"),
    ("\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3059\u3002", "Tokyo is the capital of Japan."),
    ("\u041c\u043e\u0441\u043a\u0432\u0430", "Moscow"),
    ("e = mc^2; x_1 <= 7 && y != 0", "energy equals mass times the speed of light squared"),
    ("a\u0000b\u200bc\ufffd".replace("\u0000", "\u0001"), "abc"),
    ("<|im_end|> </s>", "special tokens"),
    ("[SEP]", "sep"),
    ("The model wrote [MASK] and stopped.[SEP][PAD]", "[CLS] The model wrote [mask] and stopped."),
    ("x" * 150, "pneumonoultramicroscopicsilicovolcanoconiosis"),
    ("".join(long % i for i in range(30)), "".join(long % i for i in range(29, -1, -1))),  # both are cut at 256 tokens
    ("".join(long % i for i in range(30)), "".join(long % i for i in range(25))),  # equal in what is left
]
with open(here + "/pairs.jsonl", "w") as f:
    for a, b in pairs:
        u, v = model.encode([a, b], batch_size=1, normalize_embeddings=True).astype("float64")
        f.write(json.dumps({"a": a, "b": b, "cosine": round(float(u @ v), 7)}) + "\n")

#!/usr/bin/env python3
"""make-minibert.py - writes tests/data/minibert: a BERT with random weights, small enough for the repository (40 KB), and
what transformers makes of a few texts with it: mean over the tokens, length 1."""
import json, os, torch
from transformers import BertConfig, BertModel, BertTokenizer

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/minibert")
words = "the cache of a long context is kept on disk and read back . , ? ! ' - 7 19 paris it ##s ##ing ##ed".split()
letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
vocabulary = list(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words + letters + ["##" + c for c in letters]))
os.makedirs(here, exist_ok=True)
open(here + "/vocab.txt", "w").write("".join(w + "\n" for w in vocabulary))

torch.manual_seed(1)
config = BertConfig(vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                    intermediate_size=48, max_position_embeddings=40, initializer_range=0.3)
model = BertModel(config, add_pooling_layer=False).eval()
for name, p in model.named_parameters():  # or biases are 0 and the norms' weights 1, and forgetting one goes unseen
    p.data += 0.1 * torch.randn_like(p)
model.save_pretrained(here)

texts = ["", "Paris", "paris!", "The cache of a long context is kept on disk.", "It's read back, is it?",
         "Zebras and quizzing, 19-7.", "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 3, "日本"]
tokenizer = BertTokenizer(here + "/vocab.txt", do_lower_case=True)
expected = []
for text in texts:
    batch = tokenizer(text, truncation=True, max_length=40, return_tensors="pt")
    with torch.no_grad():
        mean = model(**batch).last_hidden_state[0].double().mean(0)
    expected.append({"text": text, "vector": [round(v, 7) for v in (mean / mean.norm()).tolist()]})
with open(here + "/expected.jsonl", "w") as f:
    for e in expected:
        f.write(json.dumps(e, ensure_ascii=False) + "\n")

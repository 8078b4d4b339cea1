"""Hugging Face tokenizers of the kinds that engine/ and embed/ reimplement, and folders of models that hold them."""
import json
import os

import numpy
from gguf import GGUFReader
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

CONTROL = 3
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def split(pattern):
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), behavior="isolated"), byte_level(False)])


def from_gguf(path, kind="smollm2"):
    """SmolLM2's vocabulary; `kind` llama3 and qwen2 put those models' splitting and options on top of it."""
    fields = GGUFReader(path).fields
    text = lambda key: [bytes(fields[key].parts[i]).decode("utf-8") for i in fields[key].data]
    tokens = text("tokenizer.ggml.tokens")
    field = fields["tokenizer.ggml.token_type"]
    types = [int(field.parts[i][0]) for i in field.data]
    merges = [tuple(m.split(" ")) for m in text("tokenizer.ggml.merges")]
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges,
                               ignore_merges=kind == "llama3"))
    if kind == "smollm2":
        tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)])
    else:
        tok.pre_tokenizer = split(LLAMA3 if kind == "llama3" else QWEN2)
    if kind == "qwen2":
        tok.normalizer = normalizers.NFC()
    tok.decoder = decoders.ByteLevel()
    special = [t for t, k in zip(tokens, types) if k == CONTROL]
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    return tok


def minilm(folder):
    tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tok.no_padding()
    tok.no_truncation()
    return tok


def ids(tok, texts):
    """Of the bare texts: nothing around them, and what looks like a special token is text, but not for an embedder."""
    tok.encode_special_tokens = not isinstance(tok.model, models.WordPiece)
    return [e.ids for e in tok.encode_batch_fast(texts, add_special_tokens=False)]


def tiny_model(folder, tok):
    """The smallest model that has this tokenizer, so that code that opens models can read its tokenizer.json."""
    os.makedirs(folder, exist_ok=True)
    n = tok.get_vocab_size()
    shapes = {"model.embed_tokens": (n, 4), "model.norm": (4,)}
    layer = {"input_layernorm": (4,), "post_attention_layernorm": (4,), "mlp.gate_proj": (8, 4), "mlp.up_proj": (8, 4),
             "mlp.down_proj": (4, 8)} | {f"self_attn.{x}_proj": (4, 4) for x in "qkvo"}
    shapes |= {f"model.layers.0.{name}": shape for name, shape in layer.items()}
    save_file({f"{k}.weight": numpy.ones(s, numpy.float32) for k, s in shapes.items()}, f"{folder}/model.safetensors")
    tok.save(f"{folder}/tokenizer.json")
    config = dict(model_type="llama", num_hidden_layers=1, hidden_size=4, intermediate_size=8, vocab_size=n,
                  max_position_embeddings=64, num_attention_heads=2, rms_norm_eps=1e-5, tie_word_embeddings=True)
    with open(f"{folder}/config.json", "w") as f:
        json.dump(config, f)

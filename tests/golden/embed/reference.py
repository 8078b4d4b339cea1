"""The tokenizers of the embedder's models, as Hugging Face's `tokenizers` has them, and texts that are hard to read."""
import os, random
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ODD = ["", "[", "]", "[[SEP]]", "[sep]", "[Cls]", "[SEP", "SEP]", "[ SEP ]", "[CLS] ", " [SEP]", "\u0301", "e\u0301", "\u00e9",
       "\u0344", "\u1100\u1161", "\uac00", "\u4e2d", "\U0002b820", "\U0002b920", "\u0001", "\u200b", "\ufeff", "\ufffd", "\u00ad", "\ue000",
       "\t", "\n", "\r", "\u00a0", "\u3000", "\u2028", "\u0085", "\u000b", "\u180e", "\u0130", "\u1e9e", "\u00df", "\ufb01", "\u03a3\u03c3\u03c2",
       "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "\u2026", "\u2014", "\u166d", "\u2e4f", "\U00011938",
       "\u08e2", "\U00010d50", "\ua7cb", "x" * 99, "x" * 100, "x" * 101, "\u00e9" * 100, "e\u0301" * 101, "##ing", "the", "The", "cache", ",",
       ".", "'s", "19", "7", "paris", "zebra", "##", "#"]


def minilm(folder):
    tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tok.no_padding()
    tok.no_truncation()
    return tok


def from_vocab(folder):
    """BERT's tokenizer over vocab.txt."""
    with open(os.path.join(folder, "vocab.txt")) as f:
        vocab = {line.rstrip("\n"): i for i, line in enumerate(f)}
    tok = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.add_special_tokens(SPECIAL)
    return tok


def ids(tok, texts):
    """Special tokens in the text are those tokens; nothing around it."""
    return [e.ids for e in tok.encode_batch_fast(texts, add_special_tokens=False)]


def random_texts(n, seed):
    """Special tokens beside each other, inside words and beside everything in ODD; then characters of any kind."""
    draw = random.Random(seed)
    point = lambda: chr(draw.choice([draw.randrange(1, 0x250), draw.randrange(0x250, 0x3100), draw.randrange(0x3100, 0xd800),
                                     draw.randrange(0xe000, 0x10000), draw.randrange(0x10000, 0x20000),
                                     draw.randrange(0x20000, 0x110000)]))
    kinds = [lambda: draw.choice(SPECIAL), lambda: draw.choice(ODD), point, lambda: draw.choice([" ", "", "a", "-"])]
    return ["".join(draw.choice(kinds)() for _ in range(draw.randrange(1, 24))) for _ in range(n)]

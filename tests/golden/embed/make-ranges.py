#!/usr/bin/env python3
"""make-ranges.py - writes embed/bert_ranges.h: the characters that Hugging Face's BERT normaliser drops, those that it
takes for combining marks, and those that its pre-tokenizer splits at, each found by asking the library about every
code point. Needs the package `tokenizers`."""
import os
from tokenizers import normalizers, pre_tokenizers

HEAD = """/* bert_ranges.h - written by tests/golden/embed/make-ranges.py: the character classes of Hugging Face's `tokenizers`,
 * which are those of Unicode 8. ASCII is left to bert_chars.c, except for what is dropped. */
#ifndef EVP_BERT_RANGES_H
#define EVP_BERT_RANGES_H

#include <stdint.h>

struct bert_range {
    uint32_t first, last;
};

"""
bert = lambda **on: normalizers.BertNormalizer(
    **dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False) | on)
clean, strip, decompose = bert(clean_text=True), bert(strip_accents=True), normalizers.NFD()
split = pre_tokenizers.BertPreTokenizer()
points = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]
around = lambda c: f"a{chr(c)}b"
classes = {
    "dropped": ("Control characters, format characters, private use and U+FFFD.",
                [c for c in points if clean.normalize_str(around(c)) == "ab"]),
    "marks": ("Combining marks that do not decompose.",
              [c for c in points if decompose.normalize_str(chr(c)) == chr(c)
               and strip.normalize_str(around(c)) == "ab"]),
    "punctuation": ("Outside ASCII.",
                    [c for c in points if c >= 128 and len(split.pre_tokenize_str(around(c))) == 3]),
}


def ranges(cs):
    out = []
    for c in cs:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


here = os.path.dirname(os.path.abspath(__file__))
with open(here + "/../../../embed/bert_ranges.h", "w") as f:
    f.write(HEAD + "/* clang-format off */\n")
    for name, (comment, cs) in classes.items():
        f.write(f"/* {comment} */\nstatic const struct bert_range bert_{name}[] = {{\n")
        cells = [f"{{ 0x{a:x}, 0x{b:x} }}," for a, b in ranges(cs)]
        for i in range(0, len(cells), 5):
            f.write("    " + " ".join(cells[i:i + 5]) + "\n")
        f.write("};\n")
    f.write("/* clang-format on */\n\n#endif\n")

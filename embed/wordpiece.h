/* wordpiece.h - BERT's tokenizer (uncased): text to ids of all-MiniLM-L6-v2's vocabulary.
 *
 * Special tokens in the text are split off first, letter for letter: "[SEP]" is the token, "[sep]" is not. What is left
 * goes through these steps (bert_chars.h says which class a character has): control characters are dropped, every
 * white space becomes a blank, ideographs stand apart, NFD without combining marks, lower case, split at blanks and
 * around punctuation, then the longest piece of the vocabulary again and again ("em", "##bed").
 *
 * The ids are those of Hugging Face's `tokenizers` (BertNormalizer, BertPreTokenizer, WordPiece), without truncation
 * and without [CLS] and [SEP] around the text; tests/golden/embed/oracle compares them.
 */
#ifndef EVP_WORDPIECE_H
#define EVP_WORDPIECE_H

#include "base/err.h"
#include "base/tokens.h"

#include <stddef.h>
#include <stdint.h>

struct wordpiece;

/* dir: a folder with vocab.txt (one piece a line), or else tokenizer.json (a WordPiece model). The special tokens are
 * BERT's five as far as vocab.txt has them, or the added tokens of tokenizer.json. NULL: *err says what is wrong. */
struct wordpiece *wordpiece_open(const char *dir, struct err *err);
void wordpiece_close(struct wordpiece *w); // NULL is fine

/* Adds the ids of n bytes of UTF-8 to *out. Malformed UTF-8 becomes U+FFFD first. Thread-safe. */
int wordpiece_encode(const struct wordpiece *w, const char *text, size_t n, struct tokens *out,
                     struct err *err) MUST_CHECK;

/* The same, but text that looks like a special token is text. */
int wordpiece_encode_text(const struct wordpiece *w, const char *text, size_t n, struct tokens *out,
                          struct err *err) MUST_CHECK;

int wordpiece_n_vocab(const struct wordpiece *w); // the highest id, plus 1
int32_t wordpiece_cls(const struct wordpiece *w);
int32_t wordpiece_sep(const struct wordpiece *w);

#endif

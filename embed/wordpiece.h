/* wordpiece.h - BERT's tokenizer (uncased): text to ids of all-MiniLM-L6-v2's vocabulary.
 *
 * Special tokens in the text are split off first, letter for letter: "[SEP]" is the token, "[sep]" is not. The rest
 * goes through these steps (bert_chars.h has the character classes): drop control characters, make every white space a
 * blank, put blanks around ideographs, NFD, drop combining marks, lower case, split at blanks and around punctuation,
 * then repeatedly take the longest token of the vocabulary from each word ("em", "##bed").
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

/* dir: a folder with vocab.txt (one token per line), or else tokenizer.json (a WordPiece model). The special tokens are
 * those of BERT's five that vocab.txt has, or the added tokens of tokenizer.json. NULL: *err says what is wrong. */
struct wordpiece *wordpiece_open(const char *dir, struct err *err);
void wordpiece_close(struct wordpiece *w); // NULL is fine

/* Adds the ids of n bytes of UTF-8 to *out. Malformed UTF-8 becomes U+FFFD first. Thread-safe. */
int wordpiece_encode(const struct wordpiece *w, const char *text, size_t n, struct tokens *out,
                     struct err *err) MUST_CHECK;

int wordpiece_n_vocab(const struct wordpiece *w); // the highest id, plus 1
int32_t wordpiece_cls(const struct wordpiece *w);
int32_t wordpiece_sep(const struct wordpiece *w);

#endif

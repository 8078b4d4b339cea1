/* wordpiece.h - BERT's tokenizer (uncased): text to ids of all-MiniLM-L6-v2's vocabulary.
 *
 * Control characters dropped, every white space a blank, CJK characters apart, NFD without combining marks, lower case,
 * split at blanks and around punctuation, then the longest piece of the vocabulary again and again ("em", "##bed").
 * The same ids as Hugging Face's BertNormalizer + BertPreTokenizer + WordPiece, without truncation and without special
 * tokens: text that looks like [SEP] is text. Of all code points 568 differ, marks and punctuation of rare scripts that
 * came after Unicode 8, which that library still goes by.
 */
#ifndef EVP_WORDPIECE_H
#define EVP_WORDPIECE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct wordpiece;

struct wordpiece_ids {
    int32_t *at; // owned: wordpiece_ids_release()
    int n, room;
};
void wordpiece_ids_release(struct wordpiece_ids *ids);

/* dir: a folder with vocab.txt (one piece a line), or else tokenizer.json (a WordPiece model). */
struct wordpiece *wordpiece_open(const char *dir, struct err *err);
void wordpiece_close(struct wordpiece *w);

/* Adds the ids of n bytes of UTF-8 to *out. Malformed UTF-8 is cleaned to U+FFFD first. Thread-safe. */
int wordpiece_encode(const struct wordpiece *w, const char *text, size_t n, struct wordpiece_ids *out,
                     struct err *err) MUST_CHECK;

int wordpiece_n_vocab(const struct wordpiece *w);
int32_t wordpiece_cls(const struct wordpiece *w);
int32_t wordpiece_sep(const struct wordpiece *w);

#endif

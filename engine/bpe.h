/* bpe.h - byte-level byte-pair encoding: a vocabulary, and merges by rank.
 *
 * Tokens are written in GPT-2's alphabet, where each of the 256 bytes is one printable character (a blank is U+0120);
 * a piece starts as one token per byte, and of all neighbours that may merge the lowest rank does, leftmost first.
 */
#ifndef EVP_BPE_H
#define EVP_BPE_H

#include "base/err.h"
#include "base/map.h"
#include "engine/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpe_token {
    size_t at; // of its bytes in struct bpe's `bytes`
    uint32_t n;
    bool set;
};

enum { BPE_POINTS = 256 + 68 };

struct bpe {
    uint16_t point[256];         // the alphabet: byte -> character
    int16_t byte_of[BPE_POINTS]; // and back, -1: no byte
    struct map names;            // as written; number -> id through `id`
    int32_t *id;
    struct bpe_token *token; // (n_vocab)
    int n_vocab;
    struct buf bytes;        // what each token stands for
    struct bpe_merge *merge; // hash table of n_slots
    uint32_t n_slots, n_merges;
    int32_t of_byte[256];  // the token of a byte, -1: none, and the byte is dropped, as Hugging Face does
    bool whole_word_first; // "ignore_merges": a piece that is a token needs no merging
};

/* n_vocab ids, each to be set once at most; then n_merges merges in order of rank. */
int bpe_init(struct bpe *b, int n_vocab, int n_merges, struct err *err) MUST_CHECK;
int bpe_set_token(struct bpe *b, int64_t id, const char *text, size_t n, struct err *err) MUST_CHECK;
int bpe_add_merge(struct bpe *b, const char *left, size_t n_left, const char *right, size_t n_right,
                  struct err *err) MUST_CHECK;
/* The same from "left right". */
int bpe_add_merge_text(struct bpe *b, const char *text, size_t n, struct err *err) MUST_CHECK;
void bpe_finish(struct bpe *b); // after the last token
void bpe_release(struct bpe *b);

/* The id of a token as written, -1: none. */
int32_t bpe_find(const struct bpe *b, const char *text, size_t n);

/* Scratch of one encoding, reused from piece to piece. */
struct bpe_work {
    struct bpe_symbol *symbol;
    struct bpe_candidate *heap;
    size_t room;
    int n_heap;
    struct buf text;
};
void bpe_work_release(struct bpe_work *w);

/* Adds the ids of one piece to *out. */
int bpe_encode(const struct bpe *b, struct bpe_work *w, const char *piece, size_t n, struct tokens *out,
               struct err *err) MUST_CHECK;

#endif

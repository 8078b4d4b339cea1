/* bpe.h - byte-level byte-pair encoding: a vocabulary, and merges by rank.
 *
 * Tokens are written in GPT-2's alphabet, where each of the 256 bytes is one printable character (a blank is U+0120).
 * A piece starts as one token per byte. Again and again the two neighbours whose merge has the lowest rank become one
 * token; of equal ranks the leftmost.
 */
#ifndef EVP_BPE_H
#define EVP_BPE_H

#include "base/err.h"
#include "base/map.h"
#include "engine/text_view.h"
#include "engine/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpe_token {
    size_t at; // where its bytes begin in struct bpe's `bytes`
    uint32_t n;
    bool set;
};

enum { BPE_POINTS = 256 + 68 };

struct bpe {
    uint16_t point[256];         // the alphabet: byte -> character
    int16_t byte_of[BPE_POINTS]; // and back, -1: no byte
    struct map names;            // tokens as written; a name's number -> id through `id`
    int32_t *id;
    struct bpe_token *token; // (n_vocab)
    int n_vocab;
    struct buf bytes;        // what each token stands for
    struct bpe_merge *merge; // hash table of n_slots
    uint32_t n_slots, n_merges;
    int32_t of_byte[256];  // the token of a byte; -1: none, and the byte is dropped, as Hugging Face does
    bool whole_word_first; // "ignore_merges": a piece that is a token needs no merging
};

/* Makes space for n_vocab ids, each set at most once, and n_merges merges, added in order of rank. ERR_FORMAT for an id
 * that is out of range or set twice, and for a merge that is not made of tokens. */
int bpe_init(struct bpe *b, int n_vocab, int n_merges, struct err *err) MUST_CHECK;
int bpe_set_token(struct bpe *b, int64_t id, struct text_view text, struct err *err) MUST_CHECK;
int bpe_add_merge(struct bpe *b, struct text_view left, struct text_view right, struct err *err) MUST_CHECK;
int bpe_add_merge_text(struct bpe *b, struct text_view text, struct err *err) MUST_CHECK; // "left right"
void bpe_finish(struct bpe *b);                                                           // after the last token
void bpe_release(struct bpe *b);

/* The id of a token as written, -1: none. */
int32_t bpe_find(const struct bpe *b, struct text_view text);

/* Scratch of one encoding, reused from piece to piece. Zeroed at first. */
struct bpe_work {
    struct {
        struct bpe_symbol *at;
        size_t n, cap;
    } symbols;
    struct {
        struct bpe_candidate *at;
        size_t n, cap;
    } heap;
    struct buf text;
};
void bpe_work_release(struct bpe_work *w);

/* Adds the ids of one piece to *out. ERR_FORMAT for a piece of more than INT_MAX / 3 bytes. */
int bpe_encode(const struct bpe *b, struct bpe_work *w, struct text_view piece, struct tokens *out,
               struct err *err) MUST_CHECK;

#endif

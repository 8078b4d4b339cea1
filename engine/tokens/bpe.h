/* bpe.h - byte-pair encoding: a vocabulary, merges by rank, and the merging of one piece of text.
 *
 * A piece starts as one token per byte, or per character. Then, repeatedly, the two neighbours with the lowest merge
 * rank become one token; of equal ranks the leftmost.
 *
 * Two facts about the ids of a piece follow from this, whatever the merges are. No merge crosses a border between two
 * final tokens, so the tokens before it are the ids of the text before it, and the tokens after it the ids of the text
 * after it. And a list of tokens is the ids of its text if every two neighbours are the ids of their text: the first
 * merge to cross a border would also cross it in these two alone. (The incremental encoder of
 * https://github.com/github/rust-gems/tree/main/crates/bpe rests on the same facts.)
 */
#ifndef EVP_BPE_H
#define EVP_BPE_H

#include "base/err.h"
#include "base/map.h"
#include "engine/model/text_view.h"
#include "engine/tokens/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bpe_kind {
    BPE_ALPHABET, // a token per byte; tokens are written in GPT-2's alphabet, where a blank is U+0120
    BPE_BYTES,    // a token per byte; tokens are written as they are
    BPE_CHARS,    // SentencePiece's: a token per character, or per byte of a character without one; U+2581 is a blank
};

struct bpe_token {
    size_t at; // where its bytes begin in struct bpe's `bytes`
    uint32_t n;
    bool set;
};

enum { BPE_POINTS = 256 + 68, BPE_PIECE_MAX = 512 };

struct bpe {
    enum bpe_kind kind;
    uint16_t point[256];         // GPT-2's alphabet: byte -> character
    int16_t byte_of[BPE_POINTS]; // and back, -1: no byte
    struct map names;            // tokens as written; a name's number -> id through `id`
    int32_t *id;
    struct bpe_token *token; // (n_vocab)
    int n_vocab;
    struct buf bytes;        // of all tokens
    struct bpe_merge *merge; // hash table of n_slots, at most half full
    uint32_t n_slots, n_merges;
    int32_t of_byte[256];  // the token of a byte; -1: none. BPE_ALPHABET drops such a byte, as Hugging Face does
    int32_t of_ascii[128]; // BPE_CHARS: the token of a character, -1: none
    uint64_t joined[1024]; // a bit for two bytes, first * 256 + second: a merge may cross the border between them
    int32_t *sorted;       // the results of merges, by their bytes; NULL before bpe_open_pieces()
    int n_sorted;
    uint32_t longest;      // of these, in bytes
    bool whole_word_first; // "ignore_merges": a piece that is a token needs no merging
};

/* Makes space for n_vocab ids, each set at most once. ERR_FORMAT for an id that is out of range or set twice, for a
 * merge that is not made of tokens, and for BPE_CHARS without a token for each byte. */
int bpe_init(struct bpe *b, enum bpe_kind kind, int n_vocab, struct err *err) MUST_CHECK;
int bpe_set_token(struct bpe *b, int64_t id, struct text_view text, struct err *err) MUST_CHECK;
int bpe_set_byte(struct bpe *b, int64_t id, struct text_view text, unsigned char byte, struct err *err) MUST_CHECK;
int bpe_finish(struct bpe *b, struct err *err) MUST_CHECK; // after the last token, before the first merge
void bpe_release(struct bpe *b);

/* Merges in order of rank, as two tokens or as "left right". */
int bpe_add_merge(struct bpe *b, struct text_view left, struct text_view right, struct err *err) MUST_CHECK;
int bpe_add_merge_text(struct bpe *b, struct text_view text, struct err *err) MUST_CHECK;

/* Adds a merge for every two tokens that together spell a third, with the third's rank. rank: (n_vocab); BPE_APART: the
 * token takes part in no merge. ERR_FORMAT for a token of more than BPE_PIECE_MAX bytes. */
#define BPE_APART UINT32_MAX
int bpe_join_tokens(struct bpe *b, const uint32_t *rank, struct err *err) MUST_CHECK;

/* After the last merge, for a tokenizer without split patterns: lets bpe_encode_open() find certain ids. */
int bpe_open_pieces(struct bpe *b, struct err *err) MUST_CHECK;

/* The id of a token as written, -1: none. */
int32_t bpe_find(const struct bpe *b, struct text_view text);

/* The bytes that a token stands for. */
struct text_view bpe_bytes(const struct bpe *b, int32_t id);

/* Scratch of one encoding, reused for all its pieces. Zeroed at first. */
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
    struct bpe_cached *cache; // the ids of short pieces met before
};
void bpe_work_release(struct bpe_work *w);

/* Adds the ids of one piece to *out. ERR_FORMAT for a piece of more than INT_MAX / 3 bytes. */
int bpe_encode(const struct bpe *b, struct bpe_work *w, struct text_view piece, struct tokens *out,
               struct err *err) MUST_CHECK;

/* The same for a piece with an open end: adds only the ids that stay the same whatever follows. The text after them is
 * encoded as a piece of its own. */
struct bpe_open {
    struct text_view text;
    size_t done; // filled in: bytes that the ids stand for
};
int bpe_encode_open(const struct bpe *b, struct bpe_work *w, struct bpe_open *piece, struct tokens *out,
                    struct err *err) MUST_CHECK;

#endif

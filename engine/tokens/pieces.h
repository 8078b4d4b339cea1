/* pieces.h - a vocabulary of SentencePiece's BPE: pieces with scores, as tokenizer.model and GGUF files hold it.
 * SentencePiece calls a token of the vocabulary a piece; so do this file, pieces.c and sentencepiece.c.
 *
 * Two neighbours are merged when together they are a piece; the highest score first, of equal ones the leftmost.
 * Source: https://github.com/google/sentencepiece, src/bpe_model.cc.
 */
#ifndef EVP_PIECES_H
#define EVP_PIECES_H

#include "engine/tokens/tokenizer_internal.h"

enum piece_type {
    PIECE_NORMAL = 1,
    PIECE_UNKNOWN = 2,
    PIECE_CONTROL = 3,
    PIECE_USER_DEFINED = 4,
    PIECE_UNUSED = 5,
    PIECE_BYTE = 6,
};

struct piece {
    struct text_view text; // U+2581 is a blank
    float score;
    int64_t type;
};

/* Zeroed at first. */
struct pieces {
    struct tokenizer *t;
    struct {
        struct ranked {
            int32_t id;
            float score;
        } * at;
        int n, cap;
    } normal;
};

/* The tokenizer was allocated as BPE_CHARS. Add pieces in ascending order of ids. ERR_FORMAT for an unused piece, an
 * unknown type, a score that is not a number, a byte without a piece, and whatever bpe.h refuses. */
int pieces_add(struct pieces *p, int id, const struct piece *piece, struct err *err) MUST_CHECK;

/* Makes the merges, after the last piece. */
int pieces_finish(struct pieces *p, struct err *err) MUST_CHECK;
void pieces_release(struct pieces *p);

/* The byte that a token's name "<0x0A>" stands for; -1: another name. */
int piece_byte(struct text_view name);

#endif

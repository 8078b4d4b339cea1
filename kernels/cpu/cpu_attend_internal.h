/* cpu_attend_internal.h - what cpu_attend.c (which tiles there are, and their results), cpu_tile.c (one tile against
 * one piece of its keys) and cpu_columns.c (statistics of the columns) share.
 *
 * A tile is some tokens of a span for one kv head: n_tokens * group rows of q. Its keys are cut into pieces: of
 * ATTN_SPLIT keys, then a multiple of KEY_STEP, then the rest, which is padded. So products have few shapes, whatever
 * the lengths, and each has its primitive made once.
 */
#ifndef EVP_CPU_ATTEND_INTERNAL_H
#define EVP_CPU_ATTEND_INTERNAL_H

#include "kernels/cpu/cpu.h"

enum {
    TILE_ROWS = 192, // x 1,024 keys of f32 scores stay in the second-level cache
    KEY_STEP = 64,
    OWN_BEGIN = 64, // keys of a sequence's own that are a piece: those who begin alike have it computed together
};

struct tile {
    const char *q, *k, *v;   // its rows of q; its first key and value
    int head;                // kv head
    int token, n_tokens;     // of the pass
    int begun;               // keys whose piece is in attend.begin, unless tiles are spread
    int n_keys;              // that its last token sees
    const struct tile *next; // that the same thread is likely to work on next; NULL: not known
};

/* A tile's rows after some of its pieces. */
struct state {
    float *sum;    // (rows, K): weighted values
    float *max;    // (rows): of the raw scores; -INFINITY: no key seen
    float *weight; // (rows): sum of the weights
};

struct attend {
    struct cpu *cpu;
    const struct attn_job *job;
    int group;          // query heads of a kv head
    bool causal;        // a token sees one key fewer than the next
    bool dots;          // by dot products, whose bits depend on nothing but the row and its keys
    bool weighed;       // the values matter; else the log-sum-exp alone
    shared_fn *shared;  // instead of products
    struct state begin; // in the order of the job's q: rows of tiles that have begun
};

/* A thread's memory for a tile. `rows` is what a product of the tile's rows or vectors of them need. */
struct tile_memory {
    float *score;  // (rows, ATTN_SPLIT)
    void *p;       // the same in bf16; in f32 it is score
    void *q;       // (rows, K): copy of the tile's rows, widened, padded or transposed
    void *k, *v;   // (KEY_STEP, K): a padded piece; a block of transposed keys, and one of widened or paired values
    float *column; // (ATTN_SPLIT)
    float *state[2];
};

static inline int tile_n_rows(const struct attend *a, const struct tile *t)
{
    return t->n_tokens * a->group;
}

/* The number of a tile's first row, in the order of the job's q. */
static inline size_t tile_row(const struct attend *a, const struct tile *t)
{
    return ((size_t)t->head * (size_t)a->job->n_tokens + (size_t)t->token) * (size_t)a->group;
}

/* Tokens of a full tile. */
static inline int tile_tokens(int group)
{
    return group >= TILE_ROWS ? 1 : TILE_ROWS / group;
}

/* The end of the piece of n_keys keys that begins at `key`. Only products need padding; the pieces of the others do not
 * depend on how many keys follow. */
static inline int piece_end(const struct attend *a, int key, int n_keys)
{
    int rest = n_keys - key;
    if (a->job->kind == ATTN_OWN && key == 0 && rest > OWN_BEGIN)
        return OWN_BEGIN;
    if (rest >= ATTN_SPLIT)
        return key + ATTN_SPLIT;
    return a->dots || a->shared || rest < KEY_STEP ? n_keys : key + rest / KEY_STEP * KEY_STEP;
}

/* How many keys row r of a tile sees. */
static inline int tile_visible(const struct attend *a, const struct tile *t, int r)
{
    int seen = a->causal ? t->n_keys - (t->n_tokens - 1 - r / a->group) : t->n_keys;
    return seen > 0 ? seen : 0;
}

size_t tile_state_floats(const struct cpu *c, int n_rows, int K);
struct state tile_state(float *at, const struct cpu *c, int n_rows, int K);

size_t tile_memory_bytes(const struct cpu *c, int n_rows, int K);
/* False without memory; the failure is remembered. */
bool tile_memory_of(struct cpu *c, int n_rows, int K, struct tile_memory *m);

/* m->score (rows, *pitch) = q . k of keys first .. end - 1, one piece or a part of one, by a product. False: failed. */
bool tile_scores(const struct attend *a, const struct tile *t, int first, int end, const struct tile_memory *m,
                 int *pitch);

/* *to = the tile's rows over the piece first .. end - 1. */
void tile_piece(const struct attend *a, const struct tile *t, int first, int end, const struct tile_memory *m,
                struct state to);

/* The tile of tokens row .. row + n_tokens - 1 of a span. */
struct tile tile_of(const struct attend *a, const struct attn_span *span, int head, int row, int n_tokens);

#endif

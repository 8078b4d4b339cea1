/* cpu_attend_internal.h - shared by cpu_attend.c (the list of tiles and their results), cpu_tile.c (one tile against
 * one piece of its keys) and cpu_columns.c (statistics of the columns).
 *
 * A tile is some tokens of a span for one kv head: n_tokens * group rows of q. Its keys are cut into pieces: ATTN_SPLIT
 * keys each, then a multiple of KEY_STEP, then the rest, padded. So products have few shapes, whatever the lengths, and
 * the primitive of each shape is made once.
 */
#ifndef EVP_CPU_ATTEND_INTERNAL_H
#define EVP_CPU_ATTEND_INTERNAL_H

#include "kernels/cpu/cpu.h"

enum {
    TILE_ROWS = 192, // the f32 scores of these rows by 1,024 keys stay in the second-level cache
    KEY_STEP = 64,
    OWN_BEGIN = 64, // the first piece of a sequence's own keys; sequences that begin alike compute it together
};

struct tile {
    const char *q, *k, *v;   // its rows of q; its first key and value
    int head;                // kv head
    int token, n_tokens;     // of the pass
    int from;                // where its first piece begins: no row sees a key before
    int begun;               // keys whose piece is in attend.begin already, unless tiles are spread
    int n_keys;              // seen by its last token
    const struct tile *next; // the same thread's likely next tile; NULL: unknown
};

/* The state of a tile's rows after some of its pieces. */
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
    bool dots;          // by dot products: the bits depend only on the row and its keys
    bool weighed;       // weighted values are wanted; false: only the log-sum-exp
    shared_fn *shared;  // used instead of products
    struct state begin; // in the order of the job's q: rows of tiles that have begun
};

/* A thread's memory for a tile. `rows`: the tile's rows, rounded up as a product or vectors of rows need. */
struct tile_memory {
    float *score;  // (rows, ATTN_SPLIT)
    void *p;       // the same in bf16; in f32 it is score
    void *q;       // (rows, K): copy of the tile's rows, widened, padded or transposed
    void *k, *v;   // (KEY_STEP, K): a padded piece; or a block of transposed keys and one of widened or paired values
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

/* The end of the piece that begins at `key`, of n_keys keys. Only products need KEY_STEP; without them a piece's end
 * does not depend on the number of keys behind it. */
static inline int piece_end(const struct attend *a, int key, int n_keys)
{
    int rest = n_keys - key;
    if (a->job->kind == ATTN_OWN && key == 0 && rest > OWN_BEGIN)
        return OWN_BEGIN;
    if (rest >= ATTN_SPLIT)
        return key + ATTN_SPLIT;
    return a->dots || a->shared || rest < KEY_STEP ? n_keys : key + rest / KEY_STEP * KEY_STEP;
}

/* The number of keys that row r of a tile sees. */
static inline int tile_visible(const struct attend *a, const struct tile *t, int r)
{
    int seen = a->causal ? t->n_keys - (t->n_tokens - 1 - r / a->group) : t->n_keys;
    return seen > 0 ? seen : 0;
}

/* The first key that row r of a tile sees. */
static inline int tile_first(const struct attend *a, const struct tile *t, int r)
{
    if (a->job->kind == ATTN_SHARED && a->job->window)
        return attn_first(a->job, t->n_keys, a->job->since[t->token + r / a->group] + 1);
    return a->causal ? attn_first(a->job, tile_visible(a, t, r), 0) : 0;
}

size_t tile_state_floats(const struct cpu *c, int n_rows, int K);
struct state tile_state(float *at, const struct cpu *c, int n_rows, int K);

size_t tile_memory_bytes(const struct cpu *c, int n_rows, int K);
/* False when memory runs out; the next sync reports it. */
bool tile_memory_of(struct cpu *c, int n_rows, int K, struct tile_memory *m);

/* m->score (rows, *pitch) = q . k of keys first .. end - 1, within one piece, by a product. False: failed. */
bool tile_scores(const struct attend *a, const struct tile *t, int first, int end, const struct tile_memory *m,
                 int *pitch);

/* *to = attention of the tile's rows to the keys of the piece first .. end - 1. */
void tile_piece(const struct attend *a, const struct tile *t, int first, int end, const struct tile_memory *m,
                struct state to);

/* The tile of tokens row .. row + n_tokens - 1 of a span. */
struct tile tile_of(const struct attend *a, const struct attn_span *span, int head, int row, int n_tokens);

#endif

/* cpu_shared.h - attention of query rows of many sequences to keys that they share.
 *
 * Decoding has few rows and a thousand keys; a general product would spend more time on packing keys and values than on
 * multiplying. So keys and values are read in place: for scores a vector holds one key's scores with as many rows as it
 * has lanes, for weighted values that many columns of one row. A row's bits do not depend on the other rows. A head of
 * 1,024 keys and 24 rows takes 88 us on a Zen 4 core in f32 and 53 us in bf16; products take 105 and 64.
 *
 * The code is in cpu_shared_internal.h, compiled for f32 like the loops of cpu_rows.h, and for bf16 in
 * cpu_shared_avx512bf16.c. cpu_shared_amx.c is for bf16 on AMX, also where rows see different numbers of keys.
 */
#ifndef EVP_CPU_SHARED_H
#define EVP_CPU_SHARED_H

#include "kernels/backend.h"

enum {
    SHARED_LANES = 16,        // arrays with a number per row are padded to a multiple of it
    SHARED_KEYS = 64,         // keys whose values are weighed together: they stay in the first-level cache
    SHARED_COLUMNS = 32,      // in bf16 head_dim is a multiple of it
    SHARED_AMX_COLUMNS = 256, // the largest head_dim of shared_amx: its state fits in the memory for scores
};

/* Some query rows and at most ATTN_SPLIT keys. */
struct shared_piece {
    const void *q;     // (n_rows, K)
    const void *k, *v; // (n_keys, K)
    int n_rows, n_keys, K;
    int group, seen;             // shared_amx: row r sees the first seen + r / group keys, none below 1; group 0: all
    const void *next_k, *next_v; // (n_next, K): likely needed next; shared_amx prefetches some of it
    int n_next;
    float scale;                   // of scores, times log2(e)
    float *sum;                    // result (n_rows, K): values weighted by 2^((score - max) * scale); NULL: not wanted
    float *max, *weight;           // results (lanes): of the scores; the sum of the weights
    float *score, *q_lanes, *v_at; // memory: (n_keys, lanes), (K, lanes), (SHARED_KEYS, K); lanes: n_rows rounded up
    void *k_at;                    // memory of shared_amx: (SHARED_KEYS, K) floats; its score is (ATTN_SPLIT, lanes)
};

typedef void shared_fn(const struct shared_piece *s);
shared_fn shared_portable, shared_avx2, shared_avx512, shared_avx512bf16, shared_amx;

/* The fastest function that this processor can run; NULL: none for this dtype. amx: the processor has AMX for bf16, and
 * the process may use it. */
shared_fn *shared_best(enum dtype dtype, bool amx);

static inline int shared_lanes(int n_rows)
{
    return (n_rows + SHARED_LANES - 1) / SHARED_LANES * SHARED_LANES;
}

#endif

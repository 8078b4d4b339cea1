/* variant_internal.h - what the files that make variants share. The memory that sizes.c and parts.c count and variant.c
 * takes must agree, or the pool is too small. */
#ifndef EVP_VARIANT_INTERNAL_H
#define EVP_VARIANT_INTERNAL_H

#include "methods/method.h"
#include "variants/sizes.h"
#include "variants/variant.h"

/* ---- parts.c ---- */

/* The matrices that n tokens of one head become, of which `whole` stay whole: `k` and `v`, and the packer's matrices
 * for all other rows. Returns how many. */
int parts_of_head(const struct config *config, int head_dim, int n, int whole, struct head_part part[HEAD_PART_MAX]);
size_t head_part_bytes(const struct head_part *part);
bool part_in_full(const char *name); // `k` or `v`

/* The fewest rows that each head of a layer keeps whole, of n_keep; 0 without a method with `whole`. */
int config_least_whole(const struct config *config, int n_keep);

/* The memory of a packed layer whose heads keep `pairs` together, with as few whole rows as can be. all: a ragged layer
 * gets the bytes that all its tokens would take in one head, and heads of no tokens beside it, whatever the lengths
 * are. rest: what each layer takes beside that where layers share the pairs. */
struct packing {
    size_t all, rest;
};
struct packing parts_packing(const struct config *config, const struct kv_shape *shape, int64_t pairs);

int variant_whole(const struct variant *v, int layer); // rows of each head that stay whole; 0 where none are marked

/* ---- compressor.c ---- */

/* The scores of one dropping or merging method with its parameters, all layers. */
struct scores {
    struct config_stage stage; // scores do not depend on its budget
    float *at;                 // (L * G, T), on the device
    double *share;             // [L] of a method with scores.shares; else NULL
    double seconds;            // to compute the scores
};

struct compressor {
    const struct kv_full *full;
    struct scores *scores; // [n_scores]
    int n_scores;
};

/* Those of a stage; NULL: it has none. */
const struct scores *compressor_scores(const struct compressor *c, const struct config_stage *stage);
double compressor_seconds(const struct compressor *c, const struct config *config); // to compute what a config needs

/* Rounds the numbers of an uncompressed cache to bf16. */
int round_cache(const struct kv_full *full, struct err *err) MUST_CHECK;

/* For a quantiser that works in host memory: codes all layers of a variant, and replaces its rows by what decoding
 * gives. Sets the sizes of v->parts, adds to the times, and with VARIANT_PAYLOAD keeps the tensors. */
int variant_code(struct variant *v, enum variant_detail detail, struct err *err) MUST_CHECK;

/* ---- sizes.c ---- */

size_t score_bytes(const struct kv_shape *shape, int n_tokens); // of one stage, in the pool

/* Bytes that a variant takes from the pool: its rows; and while it is made, first kept positions, the lengths of
 * heads that share pairs and rewritten scores, then all packed layers. */
struct variant_sizes {
    size_t rows, kept, counts, scores, packed;
};
struct variant_sizes config_sizes(const struct config *config, const struct kv_shape *shape, int n_tokens);

/* ---- variant.c ---- */

/* A variant while it is made. */
struct making {
    const struct kv_full *full;
    struct variant *v;
    enum variant_detail detail;
    struct variant_sizes sizes;
    size_t row;                  // bytes of a row, on the device
    const struct scores *scores; // NULL: nothing is dropped
    const struct scores *merged; // scores of the merging method, or NULL
    double score_s;              // seconds to compute what the config needs
    int32_t *lengths;            // [L * G]: rows of each head
    size_t pairs;                // their sum
    /* On the device: */
    char *rows;         // of all heads
    int32_t *kept;      // positions, head after head
    int32_t *counts;    // (L * G): lengths of heads that share pairs
    float *rewritten;   // (L * G, T): what the budget made of the scores
    const float *score; // (L * G, T): those, or those of the dropping method
    char *packed;       // in the place of the four above
};

/* Lists the tensors of all layers with the bytes that they take, packs the rows into them, and unpacks them. */
int variant_parts(struct making *m, struct err *err) MUST_CHECK;

/* Lets the merging method change the values of the variant's rows. */
int merge_rows(const struct making *m, struct err *err) MUST_CHECK;

#endif

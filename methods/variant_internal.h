/* variant_internal.h - the memory that sizes.c counts and variant.c takes. Both must agree, or the pool is too
 * small. */
#ifndef EVP_VARIANT_INTERNAL_H
#define EVP_VARIANT_INTERNAL_H

#include "methods/method.h"

/* The matrices that n tokens of one head become: `k` and `v`, and the packer's matrices for all other rows. Returns how
 * many. */
struct head_length {
    int layer, n, whole; // whole: as in struct layer_lengths
};
int parts_of_head(const struct config *config, const struct kv_shape *shape, const struct head_length *length,
                  struct head_part part[HEAD_PART_MAX]);
bool part_in_full(const char *name);          // `k` or `v`
bool reads_part(const struct config *config); // does it keep all rows and read some? It has one stage then

bool has_scores(const struct method *m);                       // does it compute scores?
const struct method_scores *scores_of(const struct method *m); // of a dropping or a merging method
/* Do two stages have the same scores? */
bool same_scores(const struct config_stage *a, const struct config_stage *b);
/* The stages with scores of a config: dropping, then merging. */
enum { SCORED_KINDS = 2 };
extern const enum method_kind scored_kind[SCORED_KINDS];
/* The stage of this kind of config i; NULL when an earlier config has the same scores, or config i has no such stage,
 * or one without scores. */
const struct config_stage *new_scores(const struct config *const *configs, int i, enum method_kind kind);
/* Bytes of the scores of one stage in the pool. */
size_t score_bytes(const struct kv_shape *shape, int n_tokens);

/* The scores of one dropping or merging method with its parameters, all layers. */
struct scores {
    struct config_stage stage; // scores do not depend on its budget
    float *at;                 // (L * G, T), on the device
    double *share;             // [L] of a method with scores.shares; else NULL
    double seconds;            // to compute the scores
};

/* Those of a stage; NULL: no stage, or one without scores. */
const struct scores *compressor_scores(const struct compressor *c, const struct config_stage *stage);
const struct kv_full *compressor_full(const struct compressor *c);

/* The seconds that prefill took for side outputs (enum method_need). */
double need_seconds(const struct kv_full *full, unsigned needs);

/* Rounds the numbers of a full cache to bf16. */
int round_cache(const struct kv_full *full, struct err *err) MUST_CHECK;

/* For a quantiser that works in host memory: codes all layers of a variant, and replaces its rows by what decoding
 * gives. Sets the sizes of v->parts, adds to the times, and with VARIANT_PAYLOAD keeps the tensors. */
int variant_code(struct variant *v, enum variant_detail detail, struct err *err) MUST_CHECK;

/* The memory of a packed layer whose heads keep `pairs` together: bytes of each tensor, a multiple of 64; 0 for `k` and
 * `v`; with as few whole rows as can be. A ragged layer gets the bytes that all its tokens would take in one head, and
 * heads of no tokens beside it, whatever the lengths are. */
struct packing {
    int n_parts;
    size_t bytes[HEAD_PART_MAX], total;
};
struct packing config_packing(const struct config *config, const struct kv_shape *shape, int layer, int64_t pairs);

/* Bytes that a variant takes from the pool: its rows; and while it is made, first kept positions, the lengths of
 * heads that share pairs and rewritten scores, then all packed layers. */
struct variant_sizes {
    size_t rows, kept, counts, scores, packed;
};
struct variant_sizes config_sizes(const struct config *config, const struct kv_shape *shape, int n_tokens);

int variant_whole(const struct variant *v, int layer); // rows of each head that stay whole; 0 where none are marked

/* Lets a merging method change the values of a variant's rows, which hold the pairs `kept`. */
struct merge_job {
    const struct config_stage *stage;
    const float *scores;        // of the stage, (L * G, T) on the device, or NULL
    const struct kv_rows *rows; // [L * G], on the device
    const int32_t *kept;        // ascending positions, head after head, on the device
    size_t kept_bytes;
};
int merge_rows(const struct kv_full *full, const struct merge_job *job, struct err *err) MUST_CHECK;

#endif

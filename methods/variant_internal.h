/* variant_internal.h - what sizes.c counts and variant.c takes: both must have one idea of it, or the pool is too
 * small.
 */
#ifndef EVP_VARIANT_INTERNAL_H
#define EVP_VARIANT_INTERNAL_H

#include "methods/method.h"

/* What n tokens of one head become: `k` and `v`, and what the quantiser makes of the rows that these do not hold. */
int parts_of_head(const struct config *config, const struct kv_shape *shape, int layer, int n,
                  struct head_part part[HEAD_PART_MAX]);
bool part_in_full(const char *name); // `k` or `v`

/* Do two dropping stages have the same scores? */
bool same_scores(const struct config_stage *a, const struct config_stage *b);
/* The dropping stage of config i when no config before it has the same scores, or NULL. */
const struct config_stage *new_scores(const struct config *const *configs, int i);
/* Scores of one stage, as the pool gives them out. */
size_t score_bytes(const struct kv_shape *shape, int n_tokens);

/* Where a layer is packed: every part has its bytes, a multiple of 64; those of `k` and `v` are 0. A ragged layer gets
 * what all its tokens would take in one head, whatever the lengths are. */
struct packing {
    int n_parts;
    size_t bytes[HEAD_PART_MAX], total;
};
struct packing config_packing(const struct config *config, const struct kv_shape *shape, int n_tokens, int layer);

/* Bytes of the pieces that a variant takes of the pool: its rows; and while it is made, first the kept positions and
 * the lengths of ragged heads, then all packed layers. */
struct variant_sizes {
    size_t rows, kept, counts, packed;
};
struct variant_sizes config_sizes(const struct config *config, const struct kv_shape *shape, int n_tokens);

#endif

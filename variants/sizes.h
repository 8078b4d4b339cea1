/* sizes.h - what a config makes of a context, before it is made: rows, tensors, bytes, and device memory. */
#ifndef EVP_SIZES_H
#define EVP_SIZES_H

#include "methods/method.h"

/* ---- a config and a model ---------------------------------------------- */

/* ERR_USAGE when the config does not fit a model of this shape (a quantiser's groups must divide head_dim). */
int config_check(const struct config *config, const struct kv_shape *shape, struct err *err) MUST_CHECK;

/* What the layers from `layer` on share. */
struct config_share config_share(const struct config *config, const struct kv_shape *shape, int n_tokens, int layer);

/* Rows that each head of a layer keeps, with a budget the mean: 1 .. n_tokens. Not for methods with `share`. Most
 * methods: (int)(n_tokens * (1 - drop)) in double arithmetic, as kvpress computes it, at least 1. Where the number of
 * rows is not known (chunkkv, impress): the most that each head may keep; then pairs of config_share() are the most,
 * too. */
int config_n_keep(const struct config *config, const struct kv_shape *shape, int n_tokens, int layer);
double config_keep_frac(const struct config *config, const struct kv_shape *shape, int n_tokens); // of all pairs
int64_t kv_pairs(const struct kv_shape *shape, int n_tokens); // of `none`, those of layers with a window included
int64_t kv_window_pairs(const struct kv_shape *shape, int n_tokens); // these; every variant has them

/* The tensors of one layer (`at` NULL). Returns how many; all layers have the same number. */
int config_parts(const struct config *config, const struct kv_shape *shape, const struct layer_lengths *lengths,
                 struct packed_part part[PART_MAX]);

/* The exact bytes of a variant, equal to variant.bytes; -1 where they depend on the data. */
int64_t config_bytes_known(const struct config *config, const struct kv_shape *shape, int n_tokens);
int64_t kv_bytes(const struct kv_shape *shape, int n_tokens); // uncompressed, 2-byte serving dtype
int64_t kv_pair_bytes(const struct kv_shape *shape);

/* ---- a list of configs, and the memory they take ----------------------- */

/* What prefill must save for these configs: the union of needs, the largest window. */
void configs_need(const struct config *const *configs, int n, unsigned *needs, int *window);

/* Exact bytes of device memory that some work takes from the pool. */
struct memory_need {
    size_t kept, making; // bytes that stay; further bytes taken only during the work
};

/* Bytes that prefill saves for these configs: one block of window queries of all layers, one of column sums, one of
 * what session_repeat() finds. */
size_t configs_side_bytes(const struct config *const *configs, int n, const struct kv_shape *shape, int n_tokens);
/* For compressor_new(), after a prefill that saved what the same configs need. */
struct memory_need configs_score_bytes(const struct config *const *configs, int n, const struct kv_shape *shape,
                                       int n_tokens);
/* For compressor_variant(); the rows stay. */
struct memory_need config_variant_bytes(const struct config *config, const struct kv_shape *shape, int n_tokens);

#endif

/* variant.h - the way from an uncompressed cache to its variants:
 *
 *     compressor_new(&full, configs, n, &err)                 the scores that the configs need, each once
 *     compressor_variant(c, configs[i], detail, &v, &err)     the rows of one variant
 *
 * A variant holds plain rows, with the quantiser's losses applied, so decoding needs no special case.
 */
#ifndef EVP_VARIANT_H
#define EVP_VARIANT_H

#include "methods/method.h"

struct variant {
    const struct config *config; // borrowed
    struct kv_shape shape;
    int n_tokens;                // the context's original length: the position of the next token
    struct kv_rows *rows;        // [kv_all_layers() * G]; rows are in the pool, those of `none` and of layers with a
                                 // window in the uncompressed cache
    int64_t bytes, bytes_read;   // of all tensors; of what is read to answer, less with methods that have `stored`
    double keep_frac, size_frac; // pairs kept / pairs; bytes / uncompressed bytes
    /* Seconds to make this variant alone, including scoring even where scores were reused; and to restore plain rows
     * when it is loaded (0 unless quantised). */
    double compress_s, decompress_s;
    /* Layer by layer. With VARIANT_PAYLOAD `at` is in host memory, but NULL for `k` and `v`: they are the last rows of
     * each head. */
    struct packed_part *parts; // [L * n_parts]
    int n_parts;               // per layer
    int *whole;                // [L]: rows of each head that stay whole, the last; NULL: no method with `whole`
    double packed_frac;        // of the pairs kept, with such a method; else 0
    /* With VARIANT_PAYLOAD: positions of the kept rows, head after head as in rows, ascending (with `whole` first those
     * of the packed rows, then those of the whole); NULL when all are kept. */
    int32_t *kept;
    struct backend *backend; // private
};

/* Makes the variants of one context. It keeps the methods' scores, so all drops of a method cost one scoring. */
struct compressor;

/* Computes all scores that these configs need, in full->pool, then rounds the cache to bf16, as payloads hold it.
 * `full` must outlive the compressor. */
struct compressor *compressor_new(const struct kv_full *full, const struct config *const *configs, int n,
                                  struct err *err);
void compressor_free(struct compressor *c); // NULL is fine; the pool's owner must reset the pool

enum variant_detail { VARIANT_ROWS, VARIANT_PAYLOAD }; // rows only, or also kept positions and packed tensors

/* Derives one variant. `config` must be one of the compressor's configs or have the same scores as one, and must
 * outlive the variant. The variant's rows stay in the pool until the pool's owner resets it. ERR_USAGE as
 * config_check(). On failure nothing is left to release, and the pool is as before. */
int compressor_variant(struct compressor *c, const struct config *config, enum variant_detail detail,
                       struct variant *out, struct err *err) MUST_CHECK;
void variant_release(struct variant *v); // frees its host memory; zeroed is fine

#endif

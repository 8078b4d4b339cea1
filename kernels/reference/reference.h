/* reference.h - inside the "reference" backend: naive, one thread, sums in double. The other backends are tested
 * against it. kernels/backend.h says how to add an op.
 */
#ifndef EVP_REFERENCE_H
#define EVP_REFERENCE_H

#include "kernels/backend.h"

struct backend *reference_open(struct err *err);

/* reference_dense.c */
struct weight *reference_weight_new(struct backend *be, const struct mat *host, int n_parts, enum dtype type,
                                    struct err *err);
void reference_weight_free(struct backend *be, struct weight *w);
void reference_gemm(struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,
                    enum gemm_into into);
void reference_embed(struct backend *be, struct mat out, struct mat table, const int32_t *ids);
void reference_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps);
void reference_rope(struct backend *be, const struct rope_job *job);
void reference_silu_mul(struct backend *be, struct mat out, struct mat gate_up);
void reference_argmax(struct backend *be, int32_t *id, struct mat x);

/* reference_attend.c */
void reference_attend(struct backend *be, const struct attn_item *item, int n_items, int head_dim, float scale);
void reference_merge(struct backend *be, const struct merge_job *job);

/* reference_bert.c */
void reference_layernorm(struct backend *be, struct mat out, struct mat x, const float *w, const float *b, float eps);
void reference_gelu(struct backend *be, struct mat x);

/* reference_compress.c */
void reference_key_norms(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
void reference_key_cosines(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
void reference_mean_attention(struct backend *be, float *score, const struct attn_item *item, int n_items, int head_dim,
                              float scale);
void reference_avg_pool(struct backend *be, float *score, int n_heads, int n, int pitch, int width);
void reference_top_k(struct backend *be, int32_t *kept, const float *score, int n_heads, int n, int k);
void reference_gather(struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                      int n_heads, int head_dim);
void reference_quantise(struct backend *be, const struct quant_item *item, int n_items);
void reference_dequantise(struct backend *be, const struct quant_item *item, int n_items);

#endif

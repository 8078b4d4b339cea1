/* reference.h - internals of the "reference" backend: naive, one thread, sums in double. The other backends are tested
 * against it. kernels/backend.h says how to add an op.
 *
 * A number is read as a double and written through f32 in its matrix's type, so one loop serves every dtype.
 */
#ifndef EVP_REFERENCE_H
#define EVP_REFERENCE_H

#include "kernels/backend.h"
#include "codes/half.h"

#include <assert.h>
#include <string.h>

struct reference {
    struct backend base; // first: a struct backend * of this kind is a struct reference *
    struct err failure;  // the first since the last sync; code 0: none
};

/* dtype: DTYPE_F32 or DTYPE_BF16. */
struct backend *reference_open(enum dtype dtype, struct err *err);

/* Memory for the op in progress; free() it. When memory runs out: NULL, and the next sync fails. */
void *reference_scratch(struct backend *be, size_t bytes);

/* Number i of an array of any float type and alignment. */
static inline double number_get(enum dtype type, const void *at, size_t i)
{
    const char *from = (const char *)at + i * dtype_size(type);
    uint16_t half;
    float x;

    if (type == DTYPE_F32) {
        memcpy(&x, from, sizeof(x));
        return (double)x;
    }
    assert(type == DTYPE_BF16 || type == DTYPE_F16);
    memcpy(&half, from, sizeof(half));
    return (double)(type == DTYPE_BF16 ? bf16_to_f32(half) : f16_to_f32(half));
}

static inline void number_put(enum dtype type, void *at, size_t i, double x)
{
    assert(type == DTYPE_F32 || type == DTYPE_BF16);
    if (type == DTYPE_F32)
        ((float *)at)[i] = (float)x;
    else
        ((uint16_t *)at)[i] = bf16_from_f32((float)x);
}

/* Row i, column j of a matrix. */
static inline double mat_get(struct mat m, int i, int j)
{
    return number_get(m.type, m.at, (size_t)i * (size_t)m.pitch + (size_t)j);
}

static inline void mat_put(struct mat m, int i, int j, double x)
{
    number_put(m.type, m.at, (size_t)i * (size_t)m.pitch + (size_t)j, x);
}

/* Row i of a head's keys or values, or of queries; n columns. */
static inline const void *row_of(enum dtype type, const void *at, size_t i, int n)
{
    return (const char *)at + i * (size_t)n * dtype_size(type);
}

static inline double row_dot(enum dtype type, const void *a, const void *b, int n)
{
    double sum = 0;

    for (size_t i = 0; i < (size_t)n; i++)
        sum += number_get(type, a, i) * number_get(type, b, i);
    return sum;
}

/* reference_dense.c */
struct weight *reference_weight_new(struct backend *be, const struct mat *host, int n_parts, struct err *err);
void reference_weight_free(struct backend *be, struct weight *w);
struct weight_bytes reference_weight_bytes(struct backend *be, int out, int in);
void reference_gemm(struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,
                    enum gemm_into into);
void reference_embed(struct backend *be, struct mat out, struct mat table, const int32_t *ids);
void reference_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps,
                       enum gemm_into into);
void reference_rope(struct backend *be, const struct rope_job *job);
void reference_gate_mul(struct backend *be, struct mat out, struct mat gate_up, enum gate gate);
void reference_moe(struct backend *be, struct mat x, struct mat normed, const struct experts *experts);
void reference_best(struct backend *be, struct best *best, struct mat x, const struct weight *head);
void reference_draw(struct backend *be, struct drawn_token *drawn, struct mat x, const struct weight *head,
                    const struct draw_job *job);

/* reference_attend.c */
void reference_attend(struct backend *be, const struct attn_job *job);
void reference_column_stats(struct backend *be, const struct column_job *job);
void reference_copy_slots(struct backend *be, const struct kv_store *store, const struct kv_shape *shape,
                          const struct slot_copy *copy);

/* reference_bert.c */
void reference_layernorm(struct backend *be, struct mat out, struct mat x, const float *w, const float *b, float eps);
void reference_gelu(struct backend *be, struct mat x);

/* reference_compress.c */
void reference_key_norms(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
void reference_key_cosines(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
void reference_moments(struct backend *be, const struct moment_job *job);
void reference_key_forms(struct backend *be, float *score, const float *form, const struct kv_rows *heads, int n_heads,
                         int group, int head_dim);
void reference_abs_sums(struct backend *be, float *sum, struct mat x);
void reference_avg_pool(struct backend *be, float *score, int n_heads, int n, int pitch, int width);
void reference_scale_columns(struct backend *be, float *score, int n_heads, int n, const float *factor);
void reference_mean_heads(struct backend *be, float *score, int n_heads, int n, int group);
void reference_joint_counts(struct backend *be, int32_t *count, const float *score, int n_heads, int n, int group,
                            const struct joint_keep *keep);
void reference_top_k(struct backend *be, int32_t *kept, const float *score, int n_heads, int n, const int *k);
void reference_gather(struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                      int n_heads, int head_dim);
void reference_quantise(struct backend *be, const struct quant_item *item, int n_items);
void reference_dequantise(struct backend *be, const struct quant_item *item, int n_items);

#endif

/* cpu.h - internals of the "cpu" backend: oneDNN for products, OpenMP for threads, row loops for the rest.
 *
 * Ops compute at once, on n_threads threads, and return when they are done. kernels/backend.h says how to add an op.
 */
#ifndef EVP_CPU_H
#define EVP_CPU_H

#include "kernels/backend.h"
#include "kernels/cpu/cpu_matmul.h"
#include "kernels/cpu/cpu_rows.h"
#include "kernels/cpu/cpu_shared.h"

/* Memory that ops reuse; it only grows. */
struct scratch {
    void *at;
    size_t bytes;
};

struct cpu {
    struct backend base; // first: a struct backend * of this kind is a struct cpu *
    int n_threads;
    const struct row_ops *rows;
    shared_fn *shared, *text; // attention to shared keys, and of a text; NULL: by products
    struct matmul *matmul;
    struct scratch *tile;             // [n_threads]: for a thread's current task
    struct scratch list, tasks, work; // for the op in progress, outside parallel regions
    struct err failure;               // the first since the last read or sync; code 0: none
    char note[128];                   // base.note
};

struct backend *cpu_open(const struct backend_options *options, struct err *err);

static inline struct cpu *cpu_of(struct backend *be)
{
    return (struct cpu *)be;
}

/* Row i of a matrix. */
static inline void *cpu_row(struct mat m, int i)
{
    return (char *)m.at + (size_t)i * (size_t)m.pitch * dtype_size(m.type);
}

/* At least `bytes` bytes, 64-byte aligned; the old contents are lost. When memory runs out: cpu_fail() and NULL. */
void *cpu_scratch(struct cpu *c, struct scratch *s, size_t bytes);

/* Rounds *at up to a cache line, returns that address and moves *at `bytes` beyond it. */
void *cpu_take(char **at, size_t bytes);

/* Remembers the first failure for read and sync. Any thread may call it. */
void cpu_fail(struct cpu *c, const struct err *err);

/* The calling thread's number, 0 outside parallel regions. */
int cpu_thread(void);

/* The threads that an op on n_rows rows uses. */
int cpu_threads_for(const struct cpu *c, int n_rows);

/* cpu_dtype.c: chooses the dtype; fills base.dtype, base.kind and base.note. */
int cpu_choose(struct cpu *c, const char *dtype, struct err *err) MUST_CHECK;

/* cpu_dense.c */
void cpu_gemm(struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,
              enum gemm_into into);
void cpu_embed(struct backend *be, struct mat out, struct mat table, const int32_t *ids);
void cpu_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps, enum gemm_into into);
void cpu_rope(struct backend *be, const struct rope_job *job);
void cpu_gate_mul(struct backend *be, struct mat out, struct mat gate_up, enum gate gate);
void cpu_best(struct backend *be, struct best *best, struct mat x, const struct weight *head);
void cpu_draw(struct backend *be, struct drawn_token *drawn, struct mat x, const struct weight *head,
              const struct draw_job *job);
void cpu_copy_slots(struct backend *be, const struct kv_store *store, const struct kv_shape *shape,
                    const struct slot_copy *copy);

/* cpu_moe.c */
void cpu_moe(struct backend *be, struct mat x, struct mat normed, const struct experts *experts);

/* cpu_attend.c, cpu_columns.c */
void cpu_attend(struct backend *be, const struct attn_job *job);
void cpu_column_stats(struct backend *be, const struct column_job *job);

/* cpu_bert.c */
void cpu_layernorm(struct backend *be, struct mat out, struct mat x, const float *w, const float *b, float eps);
void cpu_gelu(struct backend *be, struct mat x);

/* cpu_scores.c */
void cpu_key_norms(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
void cpu_key_cosines(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim);
void cpu_avg_pool(struct backend *be, float *score, int n_heads, int n, int pitch, int width);
void cpu_scale_columns(struct backend *be, float *score, int n_heads, int n, const float *factor);
void cpu_mean_heads(struct backend *be, float *score, int n_heads, int n, int group);

/* cpu_moments.c */
void cpu_moments(struct backend *be, const struct moment_job *job);
void cpu_key_forms(struct backend *be, float *score, const float *form, const struct kv_rows *heads, int n_heads,
                   int group, int head_dim);
void cpu_abs_sums(struct backend *be, float *sum, struct mat x);

/* cpu_select.c */
void cpu_joint_counts(struct backend *be, int32_t *count, const float *score, int n_heads, int n, int group,
                      const struct joint_keep *keep);
void cpu_top_k(struct backend *be, int32_t *kept, const float *score, int n_heads, int n, const int *k);
void cpu_gather(struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                int n_heads, int head_dim);

/* cpu_quantise.c */
void cpu_quantise(struct backend *be, const struct quant_item *item, int n_items);
void cpu_dequantise(struct backend *be, const struct quant_item *item, int n_items);

/* The most bytes that the ops of one file take: of a thread's `tile`, of `list`, `tasks` and `work`. */
struct cpu_needs {
    size_t tile, list, tasks, work;
};
struct cpu_needs cpu_attend_needs(const struct cpu *c, const struct work_shape *shape);
struct cpu_needs cpu_dense_needs(const struct cpu *c, const struct work_shape *shape);
struct cpu_needs cpu_moe_needs(const struct cpu *c, const struct work_shape *shape);
struct cpu_needs cpu_scores_needs(const struct cpu *c, const struct work_shape *shape);
struct cpu_needs cpu_moments_needs(const struct cpu *c, const struct work_shape *shape);

#endif

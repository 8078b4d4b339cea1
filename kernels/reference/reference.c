/* reference.c - the reference backend's table of ops, and its only failure: no memory for an op's own arrays. */
#include "kernels/reference/reference.h"

#include "kernels/host.h"

#include <stdlib.h>

void *reference_scratch(struct backend *be, size_t bytes)
{
    struct reference *r = (struct reference *)be;
    void *at = malloc(bytes + 1);

    if (!at && r->failure.code == 0)
        err_set(&r->failure, ERR_NOMEM, "out of memory: %zu bytes for an op of the '%s' backend", bytes, be->name);
    return at;
}

static int sync_failure(struct backend *be, struct err *err)
{
    struct reference *r = (struct reference *)be;
    int code = r->failure.code;

    if (code)
        *err = r->failure;
    r->failure.code = 0;
    return code;
}

/* The largest of three needs: the numbers of one row in moe, all scores of a group in joint_counts, a row of logits in
 * draw. */
static size_t scratch(struct backend *be, const struct work_shape *work)
{
    enum { SCORE_BYTES = 16 };
    size_t expert = sizeof(double) * (size_t)work->n_experts + 3 * sizeof(float) * (size_t)work->expert_width,
           scores = SCORE_BYTES * (size_t)work->n_joint * (size_t)work->n_keys,
           logits = sizeof(float) * (size_t)work->n_vocab, most = expert > scores ? expert : scores;

    (void)be;
    return most > logits ? most : logits;
}

static void close_reference(struct backend *be)
{
    free(be);
}

struct backend *reference_open(enum dtype dtype, struct err *err)
{
    struct reference *r = calloc(1, sizeof(*r));

    if (!r) {
        err_nomem(err);
        return NULL;
    }
    r->base = (struct backend){
        .name = "reference",
        .kind = "reference",
        .dtype = dtype,
        .pass_rows = 512,
        .plain_weights = true,
        .sync = sync_failure,
        .scratch = scratch,
        .weight_new = reference_weight_new,
        .weight_free = reference_weight_free,
        .weight_bytes = reference_weight_bytes,
        .gemm = reference_gemm,
        .attend = reference_attend,
        .embed = reference_embed,
        .rmsnorm = reference_rmsnorm,
        .rope = reference_rope,
        .gate_mul = reference_gate_mul,
        .moe = reference_moe,
        .best = reference_best,
        .draw = reference_draw,
        .copy_slots = reference_copy_slots,
        .key_norms = reference_key_norms,
        .key_cosines = reference_key_cosines,
        .column_stats = reference_column_stats,
        .moments = reference_moments,
        .key_forms = reference_key_forms,
        .abs_sums = reference_abs_sums,
        .avg_pool = reference_avg_pool,
        .scale_columns = reference_scale_columns,
        .mean_heads = reference_mean_heads,
        .joint_counts = reference_joint_counts,
        .top_k = reference_top_k,
        .gather = reference_gather,
        .quantise = reference_quantise,
        .dequantise = reference_dequantise,
        .layernorm = reference_layernorm,
        .gelu = reference_gelu,
        .close = close_reference,
    };
    host_memory_ops(&r->base);
    return &r->base;
}

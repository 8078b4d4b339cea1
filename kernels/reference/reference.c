/* reference.c - the reference backend's table of ops. */
#include "kernels/reference/reference.h"

#include "kernels/host.h"

#include <stdlib.h>

static int sync_nothing(struct backend *be, struct err *err)
{
    (void)be;
    (void)err;
    return 0;
}

static void close_reference(struct backend *be)
{
    free(be);
}

struct backend *reference_open(struct err *err)
{
    struct backend *be = calloc(1, sizeof(*be));
    if (!be) {
        err_nomem(err);
        return NULL;
    }
    *be = (struct backend){
        .name = "reference",
        .sync = sync_nothing,
        .weight_new = reference_weight_new,
        .weight_free = reference_weight_free,
        .gemm = reference_gemm,
        .attend = reference_attend,
        .embed = reference_embed,
        .rmsnorm = reference_rmsnorm,
        .rope = reference_rope,
        .merge = reference_merge,
        .silu_mul = reference_silu_mul,
        .argmax = reference_argmax,
        .layernorm = reference_layernorm,
        .gelu = reference_gelu,
        .key_norms = reference_key_norms,
        .key_cosines = reference_key_cosines,
        .mean_attention = reference_mean_attention,
        .avg_pool = reference_avg_pool,
        .top_k = reference_top_k,
        .gather = reference_gather,
        .quantise = reference_quantise,
        .dequantise = reference_dequantise,
        .close = close_reference,
    };
    host_memory_ops(be);
    return be;
}

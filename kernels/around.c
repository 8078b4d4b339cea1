/* around.c - one wrapper per op: before, the inner op, after with what the shapes say about its cost.
 *
 * The order is that of struct backend: costs first, then memory, weights and ops.
 */
#include "kernels/around.h"

#include <stdlib.h>

struct around {
    struct backend base; // first: a struct backend * of this kind is a struct around *
    struct backend *inner;
    struct around_hooks hooks;
};

static struct backend *inner_of(struct backend *be)
{
    return ((struct around *)be)->inner;
}

/* Opens an op; returns the backend that does it. */
static struct backend *begin(struct backend *be)
{
    struct around *a = (struct around *)be;

    a->hooks.before(a->hooks.arg);
    return a->inner;
}

static void end(struct backend *be, const char *name, double flop, double bytes)
{
    struct around *a = (struct around *)be;

    a->hooks.after(a->hooks.arg, &(struct op_done){ name, flop, bytes });
}

/* ---- costs -------------------------------------------------------------- */

static double mat_bytes(struct mat m)
{
    return (double)m.rows * (double)m.cols * (double)dtype_size(m.type);
}

/* n numbers of the backend's dtype. */
static double own_bytes(const struct backend *be, double n)
{
    return n * (double)dtype_size(be->dtype);
}

static double weight_size(struct backend *be, const struct weight *w)
{
    struct backend *inner = inner_of(be);

    return (double)inner->weight_bytes(inner, w->out, w->in).kept;
}

static double product_flop(int rows, const struct weight *w)
{
    return 2.0 * rows * w->out * w->in;
}

/* Attention: pairs of a query row and a key that it sees, over all heads; and rows of keys read, each span's once. */
struct attn_cost {
    double pairs, keys;
};

static struct attn_cost attn_cost(const struct attn_job *job)
{
    int G = job->n_kv_heads, group = job->n_heads / G;
    struct attn_cost c = { 0 };

    for (int s = 0; s < job->spans.n; s++) {
        const struct attn_span *span = &job->spans.host[s];
        double rows = span->n_rows, keys = span->n_keys, own = keys < rows ? keys : rows;
        switch (job->kind) {
        case ATTN_TEXT:
        case ATTN_OWN: // the last `own` keys are a triangle
            c.pairs += job->n_heads * (rows * (keys - own) + own * (own + 1) / 2);
            c.keys += G * keys;
            break;
        case ATTN_WHOLE:
            c.pairs += job->n_heads * rows * keys;
            c.keys += G * keys;
            break;
        case ATTN_SHARED:
            for (int g = 0; g < G; g++) {
                size_t at = ((size_t)span->first * (size_t)job->table.n_layers + (size_t)job->layer) * (size_t)G;
                int n = job->table.host[at + (size_t)g].n;
                c.pairs += rows * group * n;
                c.keys += n;
            }
            break;
        }
    }
    return c;
}

/* Tokens of all spans. */
static double attn_tokens(const struct attn_job *job)
{
    double n = 0;

    for (int s = 0; s < job->spans.n; s++)
        n += job->spans.host[s].n_rows;
    return n;
}

static double kv_rows_of(const struct kv_rows *heads, int n_heads)
{
    double n = 0;

    for (int h = 0; h < n_heads; h++)
        n += heads[h].n;
    return n;
}

/* ---- memory and weights ------------------------------------------------- */

static void *around_alloc(struct backend *be, size_t bytes, struct err *err)
{
    return inner_of(be)->alloc(inner_of(be), bytes, err);
}

static void around_free(struct backend *be, void *at)
{
    inner_of(be)->free(inner_of(be), at);
}

static void around_write(struct backend *be, void *dst, const void *host, size_t bytes)
{
    struct backend *in = begin(be);

    in->write(in, dst, host, bytes);
    end(be, "write", 0, (double)bytes);
}

static int around_read(struct backend *be, void *host, const void *src, size_t bytes, struct err *err)
{
    struct backend *in = begin(be);

    int code = in->read(in, host, src, bytes, err);
    end(be, "read", 0, (double)bytes);
    return code;
}

static void around_copy(struct backend *be, void *dst, const void *src, size_t bytes)
{
    struct backend *in = begin(be);

    in->copy(in, dst, src, bytes);
    end(be, "copy", 0, 2 * (double)bytes);
}

static void around_repeat(struct backend *be, void *dst, size_t pitch, int n, const void *host, size_t bytes)
{
    struct backend *in = begin(be);

    in->repeat(in, dst, pitch, n, host, bytes);
    end(be, "repeat", 0, (double)bytes * (1 + n));
}

static int around_sync(struct backend *be, struct err *err)
{
    return inner_of(be)->sync(inner_of(be), err);
}

static double around_clock(struct backend *be)
{
    return inner_of(be)->clock(inner_of(be));
}

static struct device_memory around_memory(struct backend *be)
{
    return inner_of(be)->memory(inner_of(be));
}

static size_t around_scratch(struct backend *be, const struct work_shape *work)
{
    return inner_of(be)->scratch(inner_of(be), work);
}

static struct weight *around_weight_new(struct backend *be, const struct mat *host, int n_parts, struct err *err)
{
    struct backend *in = begin(be);
    double bytes = 0;

    struct weight *w = in->weight_new(in, host, n_parts, err);
    for (int p = 0; p < n_parts; p++)
        bytes += mat_bytes(host[p]);
    end(be, "weight_new", 0, bytes + (w ? weight_size(be, w) : 0));
    return w;
}

static void around_weight_free(struct backend *be, struct weight *w)
{
    inner_of(be)->weight_free(inner_of(be), w);
}

static struct weight_bytes around_weight_bytes(struct backend *be, int out, int in)
{
    return inner_of(be)->weight_bytes(inner_of(be), out, in);
}

/* ---- both kinds of transformer ------------------------------------------ */

static void around_gemm(struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,
                        enum gemm_into into)
{
    struct backend *in = begin(be);

    in->gemm(in, out, x, w, bias, into);
    end(be, "gemm", product_flop(x.rows, w),
        mat_bytes(x) + weight_size(be, w) + (into == GEMM_ADD ? 2 : 1) * mat_bytes(out));
}

/* Attention by its kind, because the kinds differ in speed. */
static const char *attend_name(enum attn_kind kind)
{
    static const char *const name[] = { [ATTN_TEXT] = "attend text",
                                        [ATTN_OWN] = "attend own",
                                        [ATTN_SHARED] = "attend shared",
                                        [ATTN_WHOLE] = "attend whole" };
    return name[kind];
}

static void around_attend(struct backend *be, const struct attn_job *job)
{
    struct attn_cost c = attn_cost(job);
    double rows = attn_tokens(job) * job->n_heads, K = job->head_dim;
    struct backend *in = begin(be);

    in->attend(in, job);
    end(be, attend_name(job->kind), 4 * K * c.pairs,
        own_bytes(be, K * (rows + 2 * c.keys)) + (job->out.at ? own_bytes(be, K * rows) : 0) +
            (job->part ? 4 * K * rows : 0) + (job->lse ? 4 * rows : 0));
}

/* ---- Llama -------------------------------------------------------------- */

static void around_embed(struct backend *be, struct mat out, struct mat table, const int32_t *ids)
{
    struct backend *in = begin(be);
    struct mat found = { .rows = out.rows, .cols = out.cols, .type = table.type };

    in->embed(in, out, table, ids);
    end(be, "embed", 0, mat_bytes(found) + mat_bytes(out));
}

static void around_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps)
{
    struct backend *in = begin(be);

    in->rmsnorm(in, out, x, w, eps);
    end(be, "rmsnorm", 0, mat_bytes(x) + mat_bytes(out));
}

static void around_rope(struct backend *be, const struct rope_job *job)
{
    struct backend *in = begin(be);
    double angles = job->cos ? 4.0 * job->qkv.rows * job->rotary : 0;

    in->rope(in, job);
    end(be, "rope", 0, 2 * mat_bytes(job->qkv) + angles);
}

static void around_merge(struct backend *be, const struct merge_job *job)
{
    struct backend *in = begin(be);
    double numbers = (double)job->out.rows * job->out.cols;

    in->merge(in, job);
    end(be, "merge", 0, 2 * 4 * (numbers + numbers / job->head_dim) + mat_bytes(job->out));
}

static void around_silu_mul(struct backend *be, struct mat out, struct mat gate_up)
{
    struct backend *in = begin(be);

    in->silu_mul(in, out, gate_up);
    end(be, "silu_mul", 0, mat_bytes(gate_up) + mat_bytes(out));
}

/* Every row reads its own experts; together they read no expert twice. */
static void around_moe(struct backend *be, struct mat x, struct mat normed, const struct experts *experts)
{
    struct backend *in = begin(be);
    double rows = x.rows, used = rows * experts->n_used, read = used < experts->n ? used : experts->n;
    const struct weight *gate_up = experts->gate_up[0], *down = experts->down[0];

    in->moe(in, x, normed, experts);
    end(be, "moe", rows * product_flop(1, experts->router) + used * (product_flop(1, gate_up) + product_flop(1, down)),
        weight_size(be, experts->router) + read * (weight_size(be, gate_up) + weight_size(be, down)) +
            mat_bytes(normed) + 2 * mat_bytes(x));
}

static void around_best(struct backend *be, struct best *best, struct mat x, const struct weight *head)
{
    struct backend *in = begin(be);

    in->best(in, best, x, head);
    end(be, "best", product_flop(x.rows, head), mat_bytes(x) + weight_size(be, head) + (double)sizeof(*best) * x.rows);
}

static void around_copy_slots(struct backend *be, const struct kv_store *store, const struct kv_shape *shape,
                              const struct slot_copy *copy)
{
    struct backend *in = begin(be);
    double numbers = 2.0 * copy->n * shape->head_dim * shape->n_layers * shape->n_kv_heads; // K and V

    in->copy_slots(in, store, shape, copy);
    end(be, "copy_slots", 0, own_bytes(be, numbers * (1 + copy->n_to)));
}

/* ---- compression -------------------------------------------------------- */

static void around_key_norms(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    double rows = kv_rows_of(heads, n_heads);
    struct backend *in = begin(be);

    in->key_norms(in, score, heads, n_heads, head_dim);
    end(be, "key_norms", 0, own_bytes(be, rows * head_dim) + 4 * rows);
}

static void around_key_cosines(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    double rows = kv_rows_of(heads, n_heads);
    struct backend *in = begin(be);

    in->key_cosines(in, score, heads, n_heads, head_dim);
    end(be, "key_cosines", 0, own_bytes(be, rows * head_dim) + 4 * rows);
}

static void around_column_stats(struct backend *be, const struct column_job *job)
{
    struct attn_cost c = attn_cost(&job->attn);
    double rows = attn_tokens(&job->attn) * job->attn.n_heads, K = job->attn.head_dim;
    struct backend *in = begin(be);

    in->column_stats(in, job);
    end(be, "column_stats", 2 * K * c.pairs,
        own_bytes(be, K * (rows + c.keys)) + 4 * rows + (job->into == COLUMN_ADD ? 2 : 1) * 4 * c.keys);
}

static void around_avg_pool(struct backend *be, float *score, int n_heads, int n, int pitch, int width)
{
    struct backend *in = begin(be);

    in->avg_pool(in, score, n_heads, n, pitch, width);
    end(be, "avg_pool", 0, 2 * 4.0 * n_heads * n);
}

static void around_scale_columns(struct backend *be, float *score, int n_heads, int n, const float *factor)
{
    struct backend *in = begin(be);

    in->scale_columns(in, score, n_heads, n, factor);
    end(be, "scale_columns", 0, 2 * 4.0 * n_heads * n + 4.0 * n);
}

static void around_mean_heads(struct backend *be, float *score, int n_heads, int n, int group)
{
    struct backend *in = begin(be);

    in->mean_heads(in, score, n_heads, n, group);
    end(be, "mean_heads", 0, 2 * 4.0 * n_heads * n);
}

static void around_joint_counts(struct backend *be, int32_t *count, const float *score, int n_heads, int n,
                                const struct joint_keep *keep)
{
    struct backend *in = begin(be);

    in->joint_counts(in, count, score, n_heads, n, keep);
    end(be, "joint_counts", 0, 4.0 * n_heads * n + 4.0 * n_heads);
}

static void around_top_k(struct backend *be, int32_t *kept, const float *score, int n_heads, int n, const int *k)
{
    double n_kept = 0;

    for (int h = 0; h < n_heads; h++)
        n_kept += k[h];
    struct backend *in = begin(be);
    in->top_k(in, kept, score, n_heads, n, k);
    end(be, "top_k", 0, 4.0 * n_heads * n + 4 * n_kept);
}

static void around_gather(struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                          int n_heads, int head_dim)
{
    double rows = kv_rows_of(dst, n_heads);
    struct backend *in = begin(be);

    in->gather(in, dst, src, kept, n_heads, head_dim);
    end(be, "gather", 0, 4 * rows + 2 * own_bytes(be, 2 * rows * head_dim)); // K and V, read and written
}

/* Numbers, their codes, and a scale and a zero for each group. */
static double quant_bytes(const struct backend *be, const struct quant_item *item, int n_items)
{
    double bytes = 0;

    for (int i = 0; i < n_items; i++) {
        double n = (double)item[i].rows * item[i].cols;
        bytes += own_bytes(be, n) + n * item[i].bits / 8 + 2 * 2 * n / item[i].group;
    }
    return bytes;
}

static void around_quantise(struct backend *be, const struct quant_item *item, int n_items)
{
    struct backend *in = begin(be);

    in->quantise(in, item, n_items);
    end(be, "quantise", 0, quant_bytes(be, item, n_items));
}

static void around_dequantise(struct backend *be, const struct quant_item *item, int n_items)
{
    struct backend *in = begin(be);

    in->dequantise(in, item, n_items);
    end(be, "dequantise", 0, quant_bytes(be, item, n_items));
}

/* ---- BERT --------------------------------------------------------------- */

static void around_layernorm(struct backend *be, struct mat out, struct mat x, const float *w, const float *b,
                             float eps)
{
    struct backend *in = begin(be);

    in->layernorm(in, out, x, w, b, eps);
    end(be, "layernorm", 0, mat_bytes(x) + mat_bytes(out));
}

static void around_gelu(struct backend *be, struct mat x)
{
    struct backend *in = begin(be);

    in->gelu(in, x);
    end(be, "gelu", 0, 2 * mat_bytes(x));
}

/* ---- opening and closing ------------------------------------------------ */

static void around_close(struct backend *be)
{
    struct around *a = (struct around *)be;

    a->inner->close(a->inner);
    if (a->hooks.close)
        a->hooks.close(a->hooks.arg);
    free(a);
}

struct backend *around_open(struct backend *inner, const struct around_hooks *hooks, struct err *err)
{
    struct around *a = calloc(1, sizeof(*a));

    if (!a) {
        err_nomem(err);
        return NULL;
    }
    a->inner = inner;
    a->hooks = *hooks;
    a->base = (struct backend){
        .name = inner->name,
        .kind = inner->kind,
        .note = inner->note,
        .instead = inner->instead,
        .dtype = inner->dtype,
        .pass_rows = inner->pass_rows,
        .alloc = around_alloc,
        .free = around_free,
        .write = around_write,
        .read = around_read,
        .copy = around_copy,
        .repeat = around_repeat,
        .sync = around_sync,
        .clock = around_clock,
        .memory = around_memory,
        .scratch = around_scratch,
        .weight_new = around_weight_new,
        .weight_free = around_weight_free,
        .weight_bytes = around_weight_bytes,
        .gemm = around_gemm,
        .attend = around_attend,
        .embed = around_embed,
        .rmsnorm = around_rmsnorm,
        .rope = around_rope,
        .merge = around_merge,
        .silu_mul = around_silu_mul,
        .moe = around_moe,
        .best = around_best,
        .copy_slots = around_copy_slots,
        .key_norms = around_key_norms,
        .key_cosines = around_key_cosines,
        .column_stats = around_column_stats,
        .avg_pool = around_avg_pool,
        .scale_columns = around_scale_columns,
        .mean_heads = around_mean_heads,
        .joint_counts = around_joint_counts,
        .top_k = around_top_k,
        .gather = around_gather,
        .quantise = around_quantise,
        .dequantise = around_dequantise,
        .layernorm = around_layernorm,
        .gelu = around_gelu,
        .close = around_close,
    };
    return &a->base;
}

void *around_arg(const struct backend *be)
{
    return ((const struct around *)be)->hooks.arg;
}

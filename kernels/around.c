/* around.c - a wrapper per op: before, the inner op, after with the cost that follows from the shapes. OPS lists the
 * ops and their costs. */
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

/* Begins an op; returns the backend that computes it. */
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

/* pairs: (query row, key that it sees), over all heads. keys: rows of keys read, each span's once. */
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

static double attend_bytes(const struct backend *be, const struct attn_job *job)
{
    double rows = attn_tokens(job) * job->n_heads, K = job->head_dim;

    return own_bytes(be, K * (rows + 2 * attn_cost(job).keys)) + (job->out.at ? own_bytes(be, K * rows) : 0) +
           (job->part ? 4 * K * rows : 0) + (job->lse ? 4 * rows : 0) + (job->other_part ? 4 * (K + 1) * rows : 0);
}

static double column_bytes(const struct backend *be, const struct column_job *job)
{
    double rows = attn_tokens(&job->attn) * job->attn.n_heads, keys = attn_cost(&job->attn).keys;

    return own_bytes(be, job->attn.head_dim * (rows + keys)) + 4 * rows + (job->into == COLUMN_ADD ? 2 : 1) * 4 * keys;
}

static double embed_bytes(struct mat out, struct mat table)
{
    struct mat found = { .rows = out.rows, .cols = out.cols, .type = table.type };

    return mat_bytes(found) + mat_bytes(out);
}

static double moe_flop(int rows, const struct experts *e)
{
    return product_flop(rows, e->router) +
           (double)rows * e->n_used * (product_flop(1, e->gate_up[0]) + product_flop(1, e->down[0]));
}

/* Every row reads its own experts, but an expert that several rows use is counted once. */
static double moe_bytes(struct backend *be, struct mat x, struct mat normed, const struct experts *e)
{
    double used = (double)x.rows * e->n_used, read = used < e->n ? used : e->n;

    return weight_size(be, e->router) + read * (weight_size(be, e->gate_up[0]) + weight_size(be, e->down[0])) +
           mat_bytes(normed) + 2 * mat_bytes(x);
}

static double slots_bytes(const struct backend *be, const struct kv_shape *shape, const struct slot_copy *copy)
{
    double numbers = 2.0 * copy->n * shape->head_dim * kv_all_layers(shape) * shape->n_kv_heads; // K and V

    return own_bytes(be, numbers * (1 + copy->n_to));
}

static double top_bytes(int n_heads, int n, const int *k)
{
    double n_kept = 0;

    for (int h = 0; h < n_heads; h++)
        n_kept += k[h];
    return 4.0 * n_heads * n + 4 * n_kept;
}

/* All keys of the heads, and a score for each. */
static double score_bytes(const struct backend *be, const struct kv_rows *heads, int n_heads, int head_dim)
{
    double rows = kv_rows_of(heads, n_heads);

    return own_bytes(be, rows * head_dim) + 4 * rows;
}

static double form_numbers(int n_heads, int head_dim)
{
    return (double)n_heads * (head_dim + 1) * head_dim;
}

static double moment_bytes(const struct backend *be, const struct moment_job *job)
{
    double rows = (double)(job->n_tokens - job->first) * job->n_heads;

    return own_bytes(be, rows * job->head_dim) + 2 * 4 * form_numbers(job->n_heads, job->head_dim);
}

static double form_bytes(const struct backend *be, const struct kv_rows *heads, int n_heads, int group, int head_dim)
{
    double rows = kv_rows_of(heads, n_heads);

    return own_bytes(be, rows * head_dim) + 4 * form_numbers(n_heads * group, head_dim) + 4 * rows * group;
}

/* Numbers, their codes, and their scales. */
static double quant_bytes(const struct backend *be, const struct quant_item *item, int n_items)
{
    double bytes = 0;

    for (int i = 0; i < n_items; i++) {
        double n = (double)item[i].rows * item[i].cols;
        struct quant_bytes row = quant_row_bytes(&item[i].row);
        bytes += own_bytes(be, n);
        if (item[i].row.format == QUANT_MINMAX)
            bytes += n * item[i].bits / 8 + 2 * 2 * n / item[i].group;
        else
            bytes += item[i].rows * (double)(row.codes + row.scales) + (double)row.head;
    }
    return bytes;
}

/* ---- the ops --------------------------------------------------------------- */

/* OP(name, (parameters), (arguments), flop, bytes): an op of struct backend; flop and bytes are its costs as
 * expressions of its parameters. SAME(type, name, (parameters), (arguments)): passed on, not counted. In the order of
 * struct backend. Written out below: read, weight_new and attend, which do not fit, and what is not counted and returns
 * nothing. */
/* clang-format off */
#define OPS(OP, SAME)                                                                                                 \
    /* memory */                                                                                                      \
    SAME(void *, alloc, (struct backend *be, size_t bytes, struct err *err), (in, bytes, err))                        \
    OP(write, (struct backend *be, void *dst, const void *host, size_t bytes), (in, dst, host, bytes), 0,             \
       (double)bytes)                                                                                                 \
    OP(copy, (struct backend *be, void *dst, const void *src, size_t bytes), (in, dst, src, bytes), 0,                \
       2 * (double)bytes)                                                                                             \
    OP(repeat, (struct backend *be, void *dst, size_t pitch, int n, const void *host, size_t bytes),                  \
       (in, dst, pitch, n, host, bytes), 0, (double)bytes * (1 + n))                                                  \
    SAME(int, sync, (struct backend *be, struct err *err), (in, err))                                                 \
    SAME(double, clock, (struct backend *be), (in))                                                                   \
    SAME(double, watched, (struct backend *be, int hand), (in, hand))                                                 \
    SAME(struct device_memory, memory, (struct backend *be), (in))                                                    \
    SAME(size_t, scratch, (struct backend *be, const struct work_shape *work), (in, work))                            \
    /* weights */                                                                                                     \
    SAME(struct weight_bytes, weight_bytes, (struct backend *be, int n_out, int n_in), (in, n_out, n_in))             \
    /* both kinds of transformer */                                                                                   \
    OP(gemm,                                                                                                          \
       (struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,                  \
        enum gemm_into into),                                                                                         \
       (in, out, x, w, bias, into), product_flop(x.rows, w),                                                          \
       mat_bytes(x) + weight_size(be, w) + (into == GEMM_ADD ? 2 : 1) * mat_bytes(out))                               \
    /* Llama */                                                                                                       \
    OP(embed, (struct backend *be, struct mat out, struct mat table, const int32_t *ids), (in, out, table, ids), 0,   \
       embed_bytes(out, table))                                                                                       \
    OP(rmsnorm,                                                                                                       \
       (struct backend *be, struct mat out, struct mat x, const float *w, float eps, enum gemm_into into),            \
       (in, out, x, w, eps, into), 0, mat_bytes(x) + (into == GEMM_ADD ? 2 : 1) * mat_bytes(out))                     \
    OP(rope, (struct backend *be, const struct rope_job *job), (in, job), 0,                                          \
       2 * mat_bytes(job->qkv) + (job->cos ? 4.0 * job->qkv.rows * job->rotary : 0))                                  \
    OP(gate_mul, (struct backend *be, struct mat out, struct mat x, enum gate gate), (in, out, x, gate), 0,           \
       mat_bytes(x) + mat_bytes(out))                                                                                 \
    OP(moe, (struct backend *be, struct mat x, struct mat normed, const struct experts *experts),                     \
       (in, x, normed, experts), moe_flop(x.rows, experts), moe_bytes(be, x, normed, experts))                        \
    OP(best, (struct backend *be, struct best *best, struct mat x, const struct weight *head), (in, best, x, head),   \
       product_flop(x.rows, head), mat_bytes(x) + weight_size(be, head) + (double)sizeof(*best) * x.rows)             \
    OP(draw,                                                                                                          \
       (struct backend *be, struct drawn_token *drawn, struct mat x, const struct weight *head,                       \
        const struct draw_job *job),                                                                                  \
       (in, drawn, x, head, job), product_flop(x.rows, head),                                                         \
       mat_bytes(x) + weight_size(be, head) + (double)sizeof(*drawn) * x.rows)                                        \
    OP(copy_slots,                                                                                                    \
       (struct backend *be, const struct kv_store *store, const struct kv_shape *shape, const struct slot_copy *copy),\
       (in, store, shape, copy), 0, slots_bytes(be, shape, copy))                                                     \
    /* compression */                                                                                                 \
    OP(key_norms, (struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim),         \
       (in, score, heads, n_heads, head_dim), 0, score_bytes(be, heads, n_heads, head_dim))                           \
    OP(key_cosines, (struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim),       \
       (in, score, heads, n_heads, head_dim), 0, score_bytes(be, heads, n_heads, head_dim))                           \
    OP(column_stats, (struct backend *be, const struct column_job *job), (in, job),                                   \
       2 * job->attn.head_dim * attn_cost(&job->attn).pairs, column_bytes(be, job))                                   \
    OP(moments, (struct backend *be, const struct moment_job *job), (in, job),                                        \
       2.0 * (job->n_tokens - job->first) * form_numbers(job->n_heads, job->head_dim), moment_bytes(be, job))         \
    OP(key_forms,                                                                                                     \
       (struct backend *be, float *score, const float *form, const struct kv_rows *heads, int n_heads, int group,     \
        int head_dim),                                                                                                \
       (in, score, form, heads, n_heads, group, head_dim),                                                            \
       2.0 * heads->n * form_numbers(n_heads * group, head_dim), form_bytes(be, heads, n_heads, group, head_dim))     \
    OP(abs_sums, (struct backend *be, float *sum, struct mat x), (in, sum, x), 0, mat_bytes(x) + 4.0 * x.rows)        \
    OP(avg_pool, (struct backend *be, float *score, int n_heads, int n, int pitch, int width),                        \
       (in, score, n_heads, n, pitch, width), 0, 2 * 4.0 * n_heads * n)                                               \
    OP(scale_columns, (struct backend *be, float *score, int n_heads, int n, const float *factor),                    \
       (in, score, n_heads, n, factor), 0, 2 * 4.0 * n_heads * n + 4.0 * n)                                           \
    OP(mean_heads, (struct backend *be, float *score, int n_heads, int n, int group),                                 \
       (in, score, n_heads, n, group), 0, 2 * 4.0 * n_heads * n)                                                      \
    OP(joint_counts,                                                                                                  \
       (struct backend *be, int32_t *count, const float *score, int n_heads, int n, int group,                        \
        const struct joint_keep *keep),                                                                               \
       (in, count, score, n_heads, n, group, keep), 0, 4.0 * n_heads * n + 4.0 * n_heads)                             \
    OP(top_k, (struct backend *be, int32_t *kept, const float *score, int n_heads, int n, const int *k),              \
       (in, kept, score, n_heads, n, k), 0, top_bytes(n_heads, n, k))                                                 \
    OP(gather,                                                                                                        \
       (struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,                \
        int n_heads, int head_dim),                                                                                   \
       (in, dst, src, kept, n_heads, head_dim), 0,                                                                    \
       kv_rows_of(dst, n_heads) * (4 + 2 * own_bytes(be, 2 * head_dim)))                                              \
    OP(quantise, (struct backend *be, const struct quant_item *item, int n_items), (in, item, n_items), 0,            \
       quant_bytes(be, item, n_items))                                                                                \
    OP(dequantise, (struct backend *be, const struct quant_item *item, int n_items), (in, item, n_items), 0,          \
       quant_bytes(be, item, n_items))                                                                                \
    /* BERT */                                                                                                        \
    OP(layernorm, (struct backend *be, struct mat out, struct mat x, const float *w, const float *b, float eps),      \
       (in, out, x, w, b, eps), 0, mat_bytes(x) + mat_bytes(out))                                                     \
    OP(gelu, (struct backend *be, struct mat x), (in, x), 0, 2 * mat_bytes(x))
/* clang-format on */

#define DEFINE_OP(name, parameters, arguments, flop, bytes)                                                            \
    static void around_##name parameters                                                                               \
    {                                                                                                                  \
        struct backend *in = begin(be);                                                                                \
                                                                                                                       \
        in->name arguments;                                                                                            \
        end(be, #name, flop, bytes);                                                                                   \
    }
#define DEFINE_SAME(type, name, parameters, arguments)                                                                 \
    static type around_##name parameters                                                                               \
    {                                                                                                                  \
        struct backend *in = inner_of(be);                                                                             \
                                                                                                                       \
        return in->name arguments;                                                                                     \
    }
OPS(DEFINE_OP, DEFINE_SAME)

static void around_watch_start(struct backend *be)
{
    inner_of(be)->watch_start(inner_of(be));
}

static void around_watch_stop(struct backend *be, int hand)
{
    inner_of(be)->watch_stop(inner_of(be), hand);
}

static void around_free(struct backend *be, void *at)
{
    inner_of(be)->free(inner_of(be), at);
}

static void around_weight_free(struct backend *be, struct weight *w)
{
    inner_of(be)->weight_free(inner_of(be), w);
}

static int around_read(struct backend *be, void *host, const void *src, size_t bytes, struct err *err)
{
    struct backend *in = begin(be);

    int code = in->read(in, host, src, bytes, err);
    end(be, "read", 0, (double)bytes);
    return code;
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

/* Attention is counted by kind, because the kinds differ in speed. */
static void around_attend(struct backend *be, const struct attn_job *job)
{
    static const char *const name[] = { [ATTN_TEXT] = "attend text",
                                        [ATTN_OWN] = "attend own",
                                        [ATTN_SHARED] = "attend shared",
                                        [ATTN_WHOLE] = "attend whole" };
    struct backend *in = begin(be);

    in->attend(in, job);
    end(be, name[job->kind], 4 * job->head_dim * attn_cost(job).pairs, attend_bytes(be, job));
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

#define FIELD(name, parameters, arguments, flop, bytes) .name = around_##name,
#define FIELD_SAME(type, name, parameters, arguments)   .name = around_##name,

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
        .plain_weights = inner->plain_weights,
        .checks_weights = inner->checks_weights,
        .free = around_free,
        .watch_start = around_watch_start,
        .watch_stop = around_watch_stop,
        .read = around_read,
        .weight_new = around_weight_new,
        .weight_free = around_weight_free,
        .attend = around_attend,
        .close = around_close,
        OPS(FIELD, FIELD_SAME) //
    };
    return &a->base;
}

void *around_arg(const struct backend *be)
{
    return ((const struct around *)be)->hooks.arg;
}

/* layers.c - the ops of a layer that are neither products nor attention, at the shapes of the target job, and experts
 * at those of Qwen3-30B-A3B, op by op, on any backend: one object of JSON.
 *
 *     layers BACKEND DTYPE full|small [NAME]      NAME: of one op, as printed
 *
 * Seconds are means of some calls after one, operations and bytes as kernels/around.h counts them. For
 * scripts/gpu-first; small: tiny sizes, for a device that is emulated.
 */
#include "base/buf.h"
#include "codes/half.h"
#include "base/json.h"
#include "base/rng.h"
#include "kernels/timed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5, MOST_EXPERTS = 128 };

struct sizes {
    int width, mlp, n_heads, n_kv_heads, head_dim, rows, keys, sequences; // Llama's D, F, H, G, K; a pass; a context
    int expert_width, expert_inner, n_experts, n_used;
};

static const struct sizes full = { 4096, 14336, 32, 8, 128, 4096, 32768, 2000, 2048, 768, 128, 8 };
static const struct sizes small = { 64, 96, 4, 2, 32, 20, 90, 13, 64, 32, 8, 2 };

struct bench {
    struct backend *be; // timed
    const struct sizes *of;
    const char *only; // NULL: all
    struct json_out out;
    struct err err;
};

static void *checked(const struct bench *b, void *at)
{
    if (!at) {
        fprintf(stderr, "layers: %s\n", b->err.code ? b->err.msg : "out of memory");
        exit(1);
    }
    return at;
}

/* rows random rows on the device, between -1 and 1; f32, or of the backend's dtype. */
static struct mat random_mat(struct bench *b, int rows, int cols, enum dtype type)
{
    size_t n = (size_t)rows * (size_t)cols;
    struct mat m = { checked(b, b->be->alloc(b->be, n * dtype_size(type), &b->err)), type, rows, cols, cols };
    float *host = checked(b, malloc(n * sizeof(*host)));
    uint16_t *half = (uint16_t *)(void *)host; // written behind what is read
    struct rng rng = rng_new(n);

    for (size_t i = 0; i < n; i++) {
        float x = (float)(2 * rng_unit(&rng) - 1);
        if (type == DTYPE_F32)
            host[i] = x;
        else
            half[i] = bf16_from_f32(x);
    }
    b->be->write(b->be, m.at, host, n * dtype_size(type));
    free(host);
    return m;
}

static void forget(struct bench *b, struct mat m)
{
    b->be->free(b->be, m.at);
}

/* Everything that was called so far. */
static struct op_time total(const struct bench *b)
{
    struct op_time op[TIMED_OPS], all = { 0 };

    for (int i = 0, n = timed_list(b->be, op); i < n; i++) {
        all.seconds += op[i].seconds;
        all.flop += op[i].flop;
        all.bytes += op[i].bytes;
    }
    return all;
}

/* A call of an op, and what it needs. */
struct call {
    void (*run)(struct bench *b, const struct call *c);
    struct mat x, to;
    const float *norm;
    const struct column_job *columns;
    const struct experts *experts;
};

static void run(struct bench *b, const char *name, const struct call *c)
{
    if (b->only && strcmp(b->only, name) != 0)
        return;
    c->run(b, c);
    struct op_time before = total(b);
    for (int i = 0; i < REPEATS; i++)
        c->run(b, c);
    struct op_time after = total(b);
    double seconds = after.seconds - before.seconds;
    json_begin(&b->out, NULL, '{');
    json_put_text(&b->out, "op", name);
    json_put_real(&b->out, "seconds", seconds / REPEATS);
    json_put_real(&b->out, "flop_per_s", (after.flop - before.flop) / seconds);
    json_put_real(&b->out, "bytes_per_s", (after.bytes - before.bytes) / seconds);
    json_end(&b->out, '}');
}

/* ---- the ops ------------------------------------------------------------- */

static void call_rmsnorm(struct bench *b, const struct call *c)
{
    b->be->rmsnorm(b->be, c->to, c->x, c->norm, 1e-5f, GEMM_SET);
}

static void call_silu(struct bench *b, const struct call *c)
{
    b->be->gate_mul(b->be, c->to, c->x, GATE_SILU);
}

static void call_columns(struct bench *b, const struct call *c)
{
    b->be->column_stats(b->be, c->columns);
}

static void call_moe(struct bench *b, const struct call *c)
{
    b->be->moe(b->be, c->to, c->x, c->experts);
}

static void run_rows(struct bench *b)
{
    const struct sizes *z = b->of;
    struct mat x = random_mat(b, z->rows, z->width, DTYPE_F32), out = random_mat(b, z->rows, z->width, b->be->dtype);
    struct mat norm = random_mat(b, 1, z->width, DTYPE_F32), gate_up = random_mat(b, z->rows, 2 * z->mlp, b->be->dtype);
    struct mat gated = random_mat(b, z->rows, z->mlp, b->be->dtype);

    run(b, "rmsnorm", &(struct call){ .run = call_rmsnorm, .x = x, .to = out, .norm = norm.at });
    run(b, "gate_mul", &(struct call){ .run = call_silu, .x = gate_up, .to = gated });
    const struct mat all[] = { x, out, norm, gate_up, gated };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        forget(b, all[i]);
}

/* Of the last pass of a context, and of its last 64 queries. */
static void run_columns(struct bench *b)
{
    const struct sizes *z = b->of;
    int heads = z->n_kv_heads, rows = z->rows * z->n_heads;
    struct mat q = random_mat(b, rows, z->head_dim, b->be->dtype), lse = random_mat(b, 1, rows, DTYPE_F32);
    struct mat k = random_mat(b, heads * z->keys, z->head_dim, b->be->dtype);
    struct mat sums = random_mat(b, heads, z->keys, DTYPE_F32);
    struct attn_span span = { 0, z->rows, 0, z->keys };
    struct column_job job = { .attn = { .kind = ATTN_TEXT,
                                        .q = q.at,
                                        .spans = { .host = &span, .n = 1 },
                                        .store = { k.at, k.at, (size_t)z->keys },
                                        .n_tokens = z->rows,
                                        .n_heads = z->n_heads,
                                        .n_kv_heads = heads,
                                        .head_dim = z->head_dim,
                                        .scale = 1 / sqrtf((float)z->head_dim),
                                        .lse = lse.at },
                              .into = COLUMN_ADD,
                              .column = sums.at,
                              .pitch = (size_t)z->keys };

    run(b, "column_stats", &(struct call){ .run = call_columns, .columns = &job });
    span.n_rows = z->rows < 64 ? z->rows : 64;
    run(b, "column_stats of a window", &(struct call){ .run = call_columns, .columns = &job });
    const struct mat all[] = { q, lse, k, sums };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        forget(b, all[i]);
}

static struct weight *weight_of(struct bench *b, int out, int in, uint64_t seed)
{
    size_t n = (size_t)out * (size_t)in;
    float *host = checked(b, malloc(n * sizeof(*host)));
    struct rng rng = rng_new(seed);

    for (size_t i = 0; i < n; i++)
        host[i] = (float)(2 * rng_unit(&rng) - 1);
    struct weight *w = checked(b, b->be->weight_new(b->be, &(struct mat){ host, DTYPE_F32, out, in, in }, 1, &b->err));
    free(host);
    return w;
}

/* A pass of prefill and a step of decoding. */
static void run_experts(struct bench *b)
{
    const struct sizes *z = b->of;
    const struct weight *gate_up[MOST_EXPERTS], *down[MOST_EXPERTS];
    struct experts e = { .router = weight_of(b, z->n_experts, z->expert_width, 1),
                         .gate_up = gate_up,
                         .down = down,
                         .n = z->n_experts,
                         .n_used = z->n_used,
                         .width = z->expert_inner,
                         .renormalise = true };
    struct mat x = random_mat(b, z->rows, z->expert_width, DTYPE_F32);
    struct mat normed = random_mat(b, z->rows, z->expert_width, b->be->dtype);

    for (int i = 0; i < z->n_experts; i++) {
        gate_up[i] = weight_of(b, 2 * z->expert_inner, z->expert_width, (uint64_t)i);
        down[i] = weight_of(b, z->expert_width, z->expert_inner, (uint64_t)i + MOST_EXPERTS);
    }
    struct call c = { .run = call_moe, .x = normed, .to = x, .experts = &e };
    run(b, "moe of a pass", &c);
    c.x.rows = c.to.rows = z->sequences;
    run(b, "moe of sequences", &c);
    for (int i = 0; i < z->n_experts; i++) {
        b->be->weight_free(b->be, (struct weight *)(uintptr_t)gate_up[i]);
        b->be->weight_free(b->be, (struct weight *)(uintptr_t)down[i]);
    }
    b->be->weight_free(b->be, (struct weight *)(uintptr_t)e.router);
    forget(b, x);
    forget(b, normed);
}

int main(int argc, char **argv)
{
    struct buf text = { 0 };
    struct bench b = { .out.buf = &text, .only = argc == 5 ? argv[4] : NULL };

    if (argc < 4 || argc > 5 || (strcmp(argv[3], "full") && strcmp(argv[3], "small"))) {
        fprintf(stderr, "usage: layers BACKEND DTYPE full|small [NAME]\n");
        return 2;
    }
    const struct sizes *z = b.of = strcmp(argv[3], "full") == 0 ? &full : &small;
    struct backend *be = backend_open(&(struct backend_options){ .name = argv[1], .dtype = argv[2] }, &b.err);
    b.be = checked(&b, be ? timed_open(be, &b.err) : NULL);
    b.be->scratch(b.be, &(struct work_shape){ .rows = z->rows,
                                              .n_heads = z->n_heads,
                                              .n_kv_heads = z->n_kv_heads,
                                              .head_dim = z->head_dim,
                                              .n_keys = z->keys,
                                              .width = z->expert_width,
                                              .expert_width = z->expert_inner,
                                              .n_experts = z->n_experts,
                                              .n_used = z->n_used });
    json_begin(&b.out, NULL, '{');
    json_put_text(&b.out, "backend", b.be->kind);
    json_begin(&b.out, "layers", '[');
    run_rows(&b);
    run_columns(&b);
    run_experts(&b);
    json_end(&b.out, ']');
    json_end(&b.out, '}');
    if (b.be->sync(b.be, &b.err))
        checked(&b, NULL);
    puts(buf_str(&text));
    b.be->close(b.be);
    buf_release(&text);
    return 0;
}

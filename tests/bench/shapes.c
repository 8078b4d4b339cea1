/* shapes.c - products and attention at the shapes of the target job, op by op, on any backend: one object of JSON.
 *
 *     shapes products|attention BACKEND DTYPE full|small [NAME]      NAME: of one shape of attention, as printed
 *
 * The job is a context of 32,768 tokens of Llama-3.1-8B, 40 variants and 50 questions (tests/bench/roofline.py); small:
 * the same with tiny sizes, for a device that is emulated. products: each weight of a layer and the output matrix by 1
 * to 4,096 rows, and which algorithm computes it; the tokens of 2,000 rows, the most likely and drawn ones. attention:
 * a pass of the prefill; 40 variants with 50 rows each; one with 1,600 rows beside 39 with 50; 2,000 sequences' own
 * tokens. Times are the fastest of some. "differ" counts rows, tokens and spans with other bits alone than in company;
 * the status is 1 where one had. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "codes/half.h"
#include "kernels/cuda/cuda.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5, BLOCK = (1 << 20) + 8 }; // numbers of random data, which repeats in no step with rows

struct sizes {
    int width, mlp, vocab, n_heads, n_kv_heads, head_dim; // D, F, V, H, G, K
    int rows[8];                                          // of products, the largest last
    int keys, text_rows, variants, questions, own_keys;
};

static const struct sizes full = { 4096,  14336, 128256, 32, 8, 128, { 1, 32, 256, 261, 512, 1000, 2000, 4096 },
                                   32768, 4096,  40,     50, 64 };
static const struct sizes small = { 64, 96, 160, 4, 2, 32, { 1, 2, 3, 5, 8, 13, 21, 34 }, 90, 20, 4, 5, 6 };

struct bench {
    struct backend *be;
    const struct sizes *of;
    const char *only; // NULL: all
    struct json_out out;
    void *block; // BLOCK random numbers on the device
    int n_differ;
    struct err err;
};

static void stop(const char *what, const struct err *err)
{
    fprintf(stderr, "shapes: %s: %s\n", what, err->msg);
    exit(err_exit_status(err->code));
}

static void *take(struct bench *b, size_t bytes)
{
    void *at = b->be->alloc(b->be, bytes, &b->err);

    if (!at)
        stop("memory", &b->err);
    return at;
}

static size_t number_bytes(const struct bench *b)
{
    return dtype_size(b->be->dtype);
}

static void set_number(void *at, size_t i, enum dtype type, float x)
{
    if (type == DTYPE_F32)
        ((float *)at)[i] = x;
    else
        ((uint16_t *)at)[i] = bf16_from_f32(x);
}

/* n random numbers between -1 and 1, of the backend's dtype. */
static void *random_host(const struct bench *b, size_t n)
{
    struct rng rng = rng_new(1);
    void *at = calloc(n, number_bytes(b));

    for (size_t i = 0; at && i < n; i++)
        set_number(at, i, b->be->dtype, (float)(2 * rng_unit(&rng) - 1));
    if (!at)
        stop("memory", &(struct err){ .code = ERR_NOMEM, .msg = "out of memory" });
    return at;
}

/* n numbers on the device: the block, over and over. */
static void *random_numbers(struct bench *b, size_t n)
{
    char *at = take(b, n * number_bytes(b));

    for (size_t i = 0; i < n; i += BLOCK)
        b->be->copy(b->be, at + i * number_bytes(b), b->block, (n - i < BLOCK ? n - i : BLOCK) * number_bytes(b));
    return at;
}

static void *on_device(struct bench *b, const void *host, size_t bytes)
{
    void *at = take(b, bytes);

    b->be->write(b->be, at, host, bytes);
    return at;
}

static void *on_host(struct bench *b, const void *at, size_t bytes)
{
    void *host = malloc(bytes);

    if (!host || b->be->read(b->be, host, at, bytes, &b->err))
        stop("reading a result", &b->err);
    return host;
}

/* ---- products ----------------------------------------------------------- */

struct product {
    const char *name;
    int out, in;
    enum dtype result;
    struct weight *w;
    void *x;
    char *all, *some; // results
};

static void multiply(struct bench *b, const struct product *p, int first, int rows, void *out)
{
    struct mat x = { (char *)p->x + (size_t)first * (size_t)p->in * number_bytes(b), b->be->dtype, rows, p->in, p->in };

    b->be->gemm(b->be, (struct mat){ out, p->result, rows, p->out, p->out }, x, p->w, NULL, GEMM_SET);
}

/* Seconds of one product; short ones are timed several at once, since reading the clock waits for the device. */
static double time_product(struct bench *b, const struct product *p, int rows)
{
    const int at_once = rows < 512 ? 20 : 1;
    double best = INFINITY;

    for (int i = 0; i < REPEATS; i++) {
        double begin = b->be->clock(b->be);
        for (int j = 0; j < at_once; j++)
            multiply(b, p, 0, rows, p->some);
        double taken = (b->be->clock(b->be) - begin) / at_once;
        best = taken < best ? taken : best;
    }
    return best;
}

/* Do `rows` rows from `first` on have the bits that they have among all? */
static void compare_rows(struct bench *b, const struct product *p, int first, int rows)
{
    const size_t row = (size_t)p->out * dtype_size(p->result), bytes = (size_t)rows * row;

    multiply(b, p, first, rows, p->some);
    char *alone = on_host(b, p->some, bytes), *among = on_host(b, p->all + (size_t)first * row, bytes);
    for (int i = 0; i < rows; i++)
        b->n_differ += memcmp(alone + (size_t)i * row, among + (size_t)i * row, row) != 0;
    free(alone);
    free(among);
}

static void put_choice(struct bench *b, const struct product *p)
{
    struct cuda_choice c;

    if (strcmp(b->be->name, "cuda") != 0)
        return;
    if (cuda_product_choice(b->be, p->w, p->result, &c, &b->err))
        stop("the choice of an algorithm", &b->err);
    json_begin(&b->out, "choice", '{');
    json_put_text(&b->out, "way", c.way);
    json_put_int(&b->out, "refused", c.n_differed);
    json_put_int(&b->out, "id", c.id);
    json_put_int(&b->out, "tile", c.tile);
    json_put_int(&b->out, "stages", c.stages);
    json_put_int(&b->out, "cluster", c.cluster);
    json_put_int(&b->out, "custom", c.custom);
    json_end(&b->out, '}');
}

static void run_product(struct bench *b, struct product *p)
{
    enum { MAX_COMPARED = 512, N = sizeof(b->of->rows) / sizeof(*b->of->rows) };
    const int *rows = b->of->rows, n_all = rows[N - 1], before = b->n_differ;
    size_t bytes = (size_t)n_all * (size_t)p->out * dtype_size(p->result);

    p->x = random_numbers(b, (size_t)n_all * (size_t)p->in);
    p->all = take(b, bytes);
    p->some = take(b, bytes);
    multiply(b, p, 0, n_all, p->all);
    json_begin(&b->out, NULL, '{');
    json_put_text(&b->out, "weight", p->name);
    json_put_int(&b->out, "out", p->out);
    json_put_int(&b->out, "in", p->in);
    json_put_text(&b->out, "result", dtype_name(p->result));
    put_choice(b, p);
    json_begin(&b->out, "rows", '[');
    for (int i = 0; i < N; i++) {
        int compared = rows[i] < MAX_COMPARED ? rows[i] : MAX_COMPARED;
        double seconds = time_product(b, p, rows[i]);
        compare_rows(b, p, 0, compared);
        compare_rows(b, p, n_all - compared, compared);
        json_begin(&b->out, NULL, '{');
        json_put_int(&b->out, "rows", rows[i]);
        json_put_real(&b->out, "seconds", seconds);
        json_put_real(&b->out, "flop_per_s", 2.0 * rows[i] * p->out * p->in / seconds);
        json_end(&b->out, '}');
    }
    json_end(&b->out, ']');
    json_put_int(&b->out, "differ", b->n_differ - before);
    json_end(&b->out, '}');
    b->be->free(b->be, p->x);
    b->be->free(b->be, p->all);
    b->be->free(b->be, p->some);
}

/* A weight of random numbers: one part of it, over and over. */
static struct weight *weight_of(struct bench *b, int out, int in)
{
    enum { PART_ROWS = 64 };
    int n = (out + PART_ROWS - 1) / PART_ROWS;
    void *numbers = random_host(b, (size_t)PART_ROWS * (size_t)in);
    struct mat *part = calloc((size_t)n, sizeof(*part));

    for (int i = 0; part && i < n; i++) {
        int rows = out - i * PART_ROWS;
        part[i] = (struct mat){ numbers, b->be->dtype, rows < PART_ROWS ? rows : PART_ROWS, in, in };
    }
    struct weight *w = part ? b->be->weight_new(b->be, part, n, &b->err) : NULL;
    if (!w)
        stop("a weight", &b->err);
    free(part);
    free(numbers);
    return w;
}

/* ---- tokens ------------------------------------------------------------- */

/* Rows whose tokens are chosen, and a random number for each; space for the results on the device. */
struct choice {
    const struct weight *head;
    struct mat x;
    double *unit;
    void *to;
};

static const struct {
    const char *name;
    size_t bytes; // of a result
} ways[] = { { "best", sizeof(struct best) }, { "draw", sizeof(struct drawn_token) } };

/* The results of n rows, by ways[way], on the host. */
static char *choose(struct bench *b, const struct choice *c, int way, int first, int n)
{
    struct mat x = c->x;

    x.at = (char *)x.at + (size_t)first * (size_t)x.pitch * number_bytes(b);
    x.rows = n;
    if (way == 0)
        b->be->best(b->be, c->to, x, c->head);
    else
        b->be->draw(b->be, c->to, x, c->head, &(struct draw_job){ .unit = c->unit + first, .temperature = 0.3 });
    return on_host(b, c->to, (size_t)n * ways[way].bytes);
}

static void run_way(struct bench *b, const struct choice *c, int way)
{
    enum { ALONE = 5 };
    const int n = c->x.rows;
    const size_t bytes = ways[way].bytes;
    char *all = NULL;
    double best = INFINITY;

    for (int i = 0; i < REPEATS; i++) {
        double begin = b->be->clock(b->be);
        free(all);
        all = choose(b, c, way, 0, n);
        double taken = b->be->clock(b->be) - begin;
        best = taken < best ? taken : best;
    }
    for (int i = 0; i < n; i += (n + ALONE - 1) / ALONE) {
        char *alone = choose(b, c, way, i, 1);
        b->n_differ += memcmp(alone, all + (size_t)i * bytes, bytes) != 0;
        free(alone);
    }
    free(all);
    json_begin(&b->out, NULL, '{');
    json_put_text(&b->out, "tokens", ways[way].name);
    json_put_int(&b->out, "rows", n);
    json_put_real(&b->out, "seconds", best);
    json_end(&b->out, '}');
}

/* Of a decoding step: the tokens of all sequences. Some rows alone must have the same. */
static void run_tokens(struct bench *b, const struct weight *head)
{
    const int n = b->of->variants * b->of->questions, D = head->in;
    const struct mat x = { random_numbers(b, (size_t)n * (size_t)D), b->be->dtype, n, D, D };
    struct choice c = { head, x, calloc((size_t)n, sizeof(*c.unit)), take(b, (size_t)n * sizeof(struct drawn_token)) };

    if (!c.unit)
        stop("memory", &(struct err){ .code = ERR_NOMEM, .msg = "out of memory" });
    for (int i = 0; i < n; i++)
        c.unit[i] = (i + 0.5) / n;
    json_begin(&b->out, "tokens", '[');
    for (int way = 0; way < 2; way++)
        run_way(b, &c, way);
    json_end(&b->out, ']');
    free(c.unit);
    b->be->free(b->be, c.to);
    b->be->free(b->be, c.x.at);
}

static void run_products(struct bench *b)
{
    const struct sizes *z = b->of;
    const int queries = z->n_heads * z->head_dim, qkv = queries + 2 * z->n_kv_heads * z->head_dim;
    struct product p[] = { { .name = "qkv", qkv, z->width, b->be->dtype, NULL, NULL, NULL, NULL },
                           { .name = "o", z->width, queries, DTYPE_F32, NULL, NULL, NULL, NULL },
                           { .name = "gate_up", 2 * z->mlp, z->width, b->be->dtype, NULL, NULL, NULL, NULL },
                           { .name = "down", z->width, z->mlp, DTYPE_F32, NULL, NULL, NULL, NULL },
                           { .name = "head", z->vocab, z->width, DTYPE_F32, NULL, NULL, NULL, NULL } };

    enum { N = sizeof(p) / sizeof(*p) };
    json_begin(&b->out, "products", '[');
    for (size_t i = 0; i < N; i++) {
        p[i].w = weight_of(b, p[i].out, p[i].in);
        run_product(b, &p[i]);
        if (i + 1 < N)
            b->be->weight_free(b->be, p[i].w);
    }
    json_end(&b->out, ']');
    run_tokens(b, p[N - 1].w);
    b->be->weight_free(b->be, p[N - 1].w);
}

/* ---- attention ---------------------------------------------------------- */

struct attention {
    const char *name;
    struct attn_job job;
    struct attn_span *span; // (job.spans.n) on the host
    double pairs, keys;     // rows by keys that they see, over all heads; key rows that are read, over all kv heads
};

/* What attention leaves: (G, T, H/G, K) and (G, T, H/G). */
struct attended {
    float *part, *lse;
};

/* Runs spans from .. from + n - 1. */
static void attend(struct bench *b, const struct attention *a, int from, int n, struct attended to)
{
    struct attn_job job = a->job;

    job.spans.host += from;
    job.spans.device += from;
    job.spans.n = n;
    job.spans.number = n == a->job.spans.n ? a->job.spans.number : 0;
    job.part = to.part;
    job.lse = to.lse;
    b->be->attend(b->be, &job);
}

static double time_attention(struct bench *b, const struct attention *a, struct attended to)
{
    double best = INFINITY;

    attend(b, a, 0, a->job.spans.n, to);
    for (int i = 0; i < REPEATS; i++) {
        double begin = b->be->clock(b->be);
        attend(b, a, 0, a->job.spans.n, to);
        double taken = b->be->clock(b->be) - begin;
        best = taken < best ? taken : best;
    }
    return best;
}

/* Spans whose results differ. */
static int count_differing(struct bench *b, const struct attention *a, const struct attended result[2])
{
    const size_t T = (size_t)a->job.n_tokens, group = (size_t)(b->of->n_heads / b->of->n_kv_heads),
                 K = (size_t)b->of->head_dim, rows = T * (size_t)b->of->n_heads;
    float *p[2], *l[2];
    int n = 0;

    for (int i = 0; i < 2; i++) {
        p[i] = on_host(b, result[i].part, rows * K * sizeof(float));
        l[i] = on_host(b, result[i].lse, rows * sizeof(float));
    }
    for (int s = 0; s < a->job.spans.n; s++) {
        bool same = true;
        for (size_t g = 0; g < (size_t)b->of->n_kv_heads; g++) {
            size_t at = (g * T + (size_t)a->span[s].row) * group, len = (size_t)a->span[s].n_rows * group;
            same &= memcmp(p[0] + at * K, p[1] + at * K, len * K * sizeof(float)) == 0 &&
                    memcmp(l[0] + at, l[1] + at, len * sizeof(float)) == 0;
        }
        n += !same;
    }
    for (int i = 0; i < 2; i++) {
        free(p[i]);
        free(l[i]);
    }
    return n;
}

/* Times it, and compares each span alone with all together. A text is one span; nothing is promised of its rows. */
static void run_attention(struct bench *b, struct attention *a)
{
    const size_t rows = (size_t)a->job.n_tokens * (size_t)b->of->n_heads, K = (size_t)b->of->head_dim;
    struct attended result[2];

    if (b->only && strcmp(b->only, a->name) != 0)
        return;
    a->job.spans.host = a->span;
    a->job.spans.number = ++b->be->n_numbered; // as in the layers of a pass
    a->job.spans.device = on_device(b, a->span, (size_t)a->job.spans.n * sizeof(*a->span));
    a->job.q = random_numbers(b, rows * K);
    for (int i = 0; i < 2; i++) {
        result[i].part = take(b, rows * K * sizeof(float));
        result[i].lse = take(b, rows * sizeof(float));
    }
    double seconds = time_attention(b, a, result[0]), e = (double)number_bytes(b);
    for (int s = 0; s < a->job.spans.n; s++)
        attend(b, a, s, 1, result[1]);
    int differ = count_differing(b, a, result);
    json_begin(&b->out, NULL, '{');
    json_put_text(&b->out, "attend", a->name);
    json_put_int(&b->out, "rows", a->job.n_tokens);
    json_put_int(&b->out, "spans", a->job.spans.n);
    json_put_real(&b->out, "seconds", seconds);
    json_put_real(&b->out, "flop_per_s", 4.0 * (double)K * a->pairs / seconds);
    json_put_real(&b->out, "bytes_per_s",
                  ((double)K * (2 * e * a->keys + (e + sizeof(float)) * (double)rows)) / seconds);
    json_put_int(&b->out, "differ", differ);
    json_end(&b->out, '}');
    b->n_differ += differ;
    for (int i = 0; i < 2; i++) {
        b->be->free(b->be, result[i].part);
        b->be->free(b->be, result[i].lse);
    }
    b->be->free(b->be, (void *)(uintptr_t)a->job.q);
    b->be->free(b->be, (void *)(uintptr_t)a->job.spans.device);
}

static struct attn_job job_of(const struct bench *b, enum attn_kind kind, int n_tokens, int n_spans)
{
    const struct sizes *z = b->of;

    return (struct attn_job){ .kind = kind,
                              .spans.n = n_spans,
                              .n_tokens = n_tokens,
                              .n_heads = z->n_heads,
                              .n_kv_heads = z->n_kv_heads,
                              .head_dim = z->head_dim,
                              .scale = 1 / sqrtf((float)z->head_dim) };
}

static struct kv_store store_of(struct bench *b, size_t slots)
{
    size_t numbers = slots * (size_t)b->of->n_kv_heads * (size_t)b->of->head_dim;

    return (struct kv_store){ random_numbers(b, numbers), random_numbers(b, numbers), slots };
}

static void free_store(struct bench *b, struct kv_store s)
{
    b->be->free(b->be, s.k);
    b->be->free(b->be, s.v);
}

/* The last pass of a prefill. */
static void run_text(struct bench *b)
{
    const struct sizes *z = b->of;
    struct attn_span span = { 0, z->text_rows, 0, z->keys };
    struct attention a = { .name = "text", .job = job_of(b, ATTN_TEXT, z->text_rows, 1), .span = &span };

    a.job.store = store_of(b, (size_t)z->keys);
    a.pairs = (double)z->n_heads * z->text_rows * (z->keys - (z->text_rows - 1) / 2.0);
    a.keys = (double)z->n_kv_heads * z->keys;
    run_attention(b, &a);
    free_store(b, a.job.store);
}

/* A token of each sequence of a decoding step, with its own tokens before it. */
static void run_own(struct bench *b)
{
    const struct sizes *z = b->of;
    int n = z->variants * z->questions;
    struct attn_span *span = calloc((size_t)n, sizeof(*span));
    struct attention a = { .name = "own", .job = job_of(b, ATTN_OWN, n, n), .span = span };

    for (int i = 0; span && i < n; i++)
        span[i] = (struct attn_span){ i, 1, i * z->own_keys, z->own_keys };
    a.job.store = store_of(b, (size_t)n * (size_t)z->own_keys);
    a.pairs = (double)z->n_heads * n * z->own_keys;
    a.keys = (double)z->n_kv_heads * n * z->own_keys;
    run_attention(b, &a);
    free_store(b, a.job.store);
    free(span);
}

/* Rows of each variant, the first with `first_rows`. kv: (variants, G). */
static void run_shared(struct bench *b, const char *name, int first_rows, const struct kv_table *table)
{
    const struct sizes *z = b->of;
    int n = z->variants, tokens = 0;
    struct attn_span *span = calloc((size_t)n, sizeof(*span));
    struct attention a = { .name = name, .span = span };

    for (int i = 0; span && i < n; i++) {
        int rows = i == 0 ? first_rows : z->questions, keys = table->host[i * z->n_kv_heads].n;
        span[i] = (struct attn_span){ tokens, rows, i, 0 };
        tokens += rows;
        a.pairs += (double)z->n_heads * rows * keys;
        a.keys += (double)z->n_kv_heads * keys;
    }
    a.job = job_of(b, ATTN_SHARED, tokens, n);
    a.job.table = *table;
    run_attention(b, &a);
    free(span);
}

static void run_attentions(struct bench *b)
{
    static const double kept[] = { 0.7, 0.5, 0.4, 0.3, 0.2, 0.1 }; // by drop ratio, as in tests/bench/roofline.py
    const struct sizes *z = b->of;
    int n = z->variants * z->n_kv_heads, G = z->n_kv_heads;
    size_t slots = 0, at = 0; // rows of each kv head; bytes
    struct kv_rows *rows = calloc((size_t)n, sizeof(*rows));

    json_begin(&b->out, "attention", '[');
    run_text(b);
    for (int i = 0; rows && i < n; i++) { // the first variant drops nothing
        rows[i].n = i < G ? z->keys : (int)(z->keys * kept[i / G % 6]);
        slots += i % G == 0 ? (size_t)rows[i].n : 0;
    }
    struct kv_store all = store_of(b, slots);
    for (int i = 0; rows && i < n; i++) {
        rows[i].k = (char *)all.k + at, rows[i].v = (char *)all.v + at;
        at += (size_t)rows[i].n * (size_t)z->head_dim * number_bytes(b);
    }
    struct kv_table table = { rows, on_device(b, rows, (size_t)n * sizeof(*rows)), 1 };
    run_shared(b, "shared", z->questions, &table);
    run_shared(b, "shared, mixed", 32 * z->questions, &table);
    free_store(b, all);
    free(rows);
    run_own(b);
    json_end(&b->out, ']');
}

/* As engine/transformer/plan.c does: attention goes in turns that what was planned can hold. */
static void plan_scratch(struct bench *b)
{
    const struct sizes *z = b->of;
    const struct work_shape shape = { .rows = z->rows[sizeof(z->rows) / sizeof(*z->rows) - 1],
                                      .n_heads = z->n_heads,
                                      .n_kv_heads = z->n_kv_heads,
                                      .head_dim = z->head_dim,
                                      .n_keys = z->keys,
                                      .width = z->width,
                                      .mlp = z->mlp,
                                      .n_vocab = z->vocab };

    b->be->scratch(b->be, &shape);
}

int main(int argc, char **argv)
{
    struct buf text = { 0 };
    struct bench b = { .out.buf = &text, .only = argc == 6 ? argv[5] : NULL };

    if (argc < 5 || argc > 6 || (strcmp(argv[1], "products") && strcmp(argv[1], "attention")) ||
        (strcmp(argv[4], "full") && strcmp(argv[4], "small"))) {
        fprintf(stderr, "usage: shapes products|attention BACKEND DTYPE full|small [NAME]\n");
        return 2;
    }
    b.of = strcmp(argv[4], "full") == 0 ? &full : &small;
    b.be = backend_open(&(struct backend_options){ .name = argv[2], .dtype = argv[3], .n_threads = 0 }, &b.err);
    if (!b.be)
        stop("opening the device", &b.err);
    void *block = random_host(&b, BLOCK);
    b.block = on_device(&b, block, BLOCK * number_bytes(&b));
    free(block);
    plan_scratch(&b);
    json_begin(&b.out, NULL, '{');
    json_put_text(&b.out, "backend", b.be->kind);
    json_put_text(&b.out, "dtype", dtype_name(b.be->dtype));
    if (strcmp(argv[1], "products") == 0)
        run_products(&b);
    else
        run_attentions(&b);
    json_put_int(&b.out, "differ", b.n_differ);
    json_end(&b.out, '}');
    if (b.be->sync(b.be, &b.err))
        stop("the device", &b.err);
    puts(buf_str(&text));
    b.be->close(b.be);
    buf_release(&text);
    return b.n_differ > 0;
}

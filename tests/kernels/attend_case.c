/* attend_case.c - memory of a backend filled for attention, and results read from it. */
#include "tests/kernels/attend_case.h"

#include <stdlib.h>
#include <string.h>

bool has_heads(const struct backend *be, int K)
{
    return strcmp(be->name, "cuda") != 0 || (K <= 256 && (be->dtype == DTYPE_F32 || K % 8 == 0));
}

int n_spans(const struct attn_case *c)
{
    int n = 0;
    while (n < MAX_SPANS && c->spans[n].n_rows > 0)
        n++;
    return n;
}

int n_tokens(const struct attn_case *c)
{
    int n = n_spans(c);
    return c->spans[n - 1].row + c->spans[n - 1].n_rows;
}

/* ---- what a case works on ----------------------------------------------- */

/* Rows of head h of a cache: fewer in every third head, none where the cache has one alone. */
static int ragged(int n, int h)
{
    return h % 3 == 2 ? n / 2 : n;
}

/* All heads of all caches, one after another in k and v. Spans name cache 0 to MAX_SPANS - 1. */
static void make_caches(struct backend *be, const struct attn_case *c, struct attn_operands *o)
{
    int n[MAX_SPANS] = { 0 }, n_heads = LAYERS * c->G;
    size_t entries = MAX_SPANS * (size_t)n_heads, rows = 0;

    for (int s = 0; s < n_spans(c); s++)
        n[c->spans[s].first] = c->spans[s].n_keys;
    for (int i = 0; i < (int)entries; i++)
        rows += (size_t)ragged(n[i / n_heads], i % n_heads);
    o->k = stored(be, "k", rows * (size_t)c->K);
    o->v = stored(be, "v", rows * (size_t)c->K);
    o->host = calloc(entries, sizeof(*o->host));
    rows = 0;
    for (int i = 0; i < (int)entries; i++) {
        size_t at = rows * (size_t)c->K;
        o->host[i] =
            (struct kv_rows){ stored_at(be, o->k, at), stored_at(be, o->v, at), ragged(n[i / n_heads], i % n_heads) };
        rows += (size_t)o->host[i].n;
    }
    o->device = bytes_from(be, o->host, entries * sizeof(*o->host));
    o->job.table = (struct kv_table){ o->host, o->device, LAYERS };
}

static void make_store(struct backend *be, const struct attn_case *c, struct attn_operands *o)
{
    int slots = 0;

    for (int s = 0; s < n_spans(c); s++) {
        int end = c->spans[s].first + c->spans[s].n_keys;
        slots = slots > end ? slots : end;
    }
    size_t n = (size_t)(LAYERS * c->G) * (size_t)slots * (size_t)c->K;
    o->k = stored(be, "k", n);
    o->v = stored(be, "v", n);
    o->job.store = (struct kv_store){ o->k, o->v, (size_t)slots };
}

struct attn_operands operands_of(struct backend *be, const struct attn_case *c)
{
    int T = n_tokens(c), H = c->G * c->group;
    struct attn_operands o = { .q = stored(be, "q", (size_t)(T * H * c->K)) };

    o.job = (struct attn_job){ .kind = c->kind,
                               .q = o.q,
                               .n_tokens = T,
                               .n_heads = H,
                               .n_kv_heads = c->G,
                               .head_dim = c->K,
                               .layer = LAYER,
                               .scale = 0.3f,
                               .window = c->window };
    int32_t *since = calloc((size_t)T, sizeof(*since));
    for (int t = 0; t < T; t++)
        since[t] = t * 7 % (c->window + 3); // the last ones see nothing of a cache
    o.job.since = o.since = bytes_from(be, since, (size_t)T * sizeof(*since));
    free(since);
    o.sinks = numbers(be, "sinks", (size_t)H);
    if (c->kind == ATTN_SHARED)
        make_caches(be, c, &o);
    else
        make_store(be, c, &o);
    return o;
}

void operands_free(struct backend *be, struct attn_operands *o)
{
    be->free(be, o->q);
    be->free(be, o->k);
    be->free(be, o->v);
    be->free(be, o->device);
    be->free(be, o->since);
    be->free(be, o->sinks);
    free(o->host);
}

/* ---- results ------------------------------------------------------------ */

struct attended attend_on(struct backend *be, const struct attn_operands *o, const struct attn_span *spans, int n,
                          int which)
{
    struct attn_job job = o->job;
    int width = job.n_heads * job.head_dim;
    size_t T = (size_t)job.n_tokens, n_out = T * (size_t)(width + PITCH), n_part = T * (size_t)width,
           n_lse = T * (size_t)job.n_heads;
    struct attn_span *device = n > 1 ? bytes_from(be, spans, (size_t)n * sizeof(*spans)) : NULL;
    struct attended a = { 0 };

    job.spans.host = spans;
    job.spans.device = device;
    job.spans.n = n;
    if (which & OUT)
        job.out = (struct mat){ stored(be, "out", n_out), be->dtype, job.n_tokens, width, width + PITCH };
    job.part = which & PART ? space(be, n_part) : NULL;
    job.lse = which & LSE ? space(be, n_lse) : NULL;
    be->attend(be, &job);
    if (which & OUT)
        a.out = read_stored(be, job.out.at, n_out, "attend out");
    if (which & PART)
        a.part = read_numbers(be, job.part, n_part, "attend part");
    if (which & LSE)
        a.lse = read_numbers(be, job.lse, n_lse, "attend lse");
    be->free(be, job.out.at);
    be->free(be, job.part);
    be->free(be, job.lse);
    be->free(be, device);
    return a;
}

void attended_free(struct attended a)
{
    free(a.out);
    free(a.part);
    free(a.lse);
}

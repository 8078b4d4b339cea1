/* reference_attend.c - attention straight from the formula: one query row, all its keys, softmax in double. Scores are
 * computed twice, not stored, so nothing is allocated. */
#include "kernels/reference/reference.h"

#include <math.h>

enum { MAX_HEAD_DIM = 1024 };

/* The keys that one query row sees, and its location: row `at` of q, part and lse; (token, head) of out. */
struct attn_row {
    struct kv_rows keys;
    int first; // of them
    size_t at;
    int token, head;
};

/* Entry i of the spans. The lists on the host and on the device must agree. */
static struct attn_span span_of(const struct attn_spans *spans, int i)
{
    assert(spans->device || spans->n == 1);
    assert(!spans->device || memcmp(&spans->host[i], &spans->device[i], sizeof(*spans->host)) == 0);
    return spans->host[i];
}

/* The rows of head g that a span's tokens attend to. */
static struct kv_rows keys_of(const struct attn_job *job, const struct attn_span *span, int g, enum dtype type)
{
    if (job->kind == ATTN_SHARED) {
        size_t at = ((size_t)span->first * (size_t)job->table.n_layers + (size_t)job->layer) * (size_t)job->n_kv_heads +
                    (size_t)g;
        const struct kv_rows *host = &job->table.host[at], *device = &job->table.device[at];
        assert(host->k == device->k && host->v == device->v && host->n == device->n);
        return *device;
    }
    size_t row = (size_t)(job->layer * job->n_kv_heads + g) * job->store.head_rows + (size_t)span->first,
           offset = row * (size_t)job->head_dim * dtype_size(type);
    return (struct kv_rows){ (char *)job->store.k + offset, job->store.v ? (char *)job->store.v + offset : NULL,
                             span->n_keys };
}

/* Row i of a span, for query head h of kv head g's group. */
static struct attn_row row_at(const struct attn_job *job, const struct attn_span *span, int g, int i, int h,
                              enum dtype type)
{
    int group = job->n_heads / job->n_kv_heads, token = span->row + i;
    struct attn_row r = {
        .keys = keys_of(job, span, g, type),
        .at = ((size_t)g * (size_t)job->n_tokens + (size_t)token) * (size_t)group + (size_t)h,
        .token = token,
        .head = g * group + h,
    };

    assert(i < span->n_rows && token < job->n_tokens);
    if (job->kind == ATTN_TEXT || job->kind == ATTN_OWN)
        r.keys.n = span->n_keys - span->n_rows + i + 1;
    if (r.keys.n < 0)
        r.keys.n = 0;
    r.first = attn_first(job, r.keys.n, job->kind == ATTN_SHARED && job->window ? job->since[token] + 1 : 0);
    return r;
}

static void each_row(struct backend *be, const struct attn_job *job,
                     void (*work)(struct backend *, const struct attn_job *, const struct attn_row *))
{
    for (int s = 0; s < job->spans.n; s++) {
        struct attn_span span = span_of(&job->spans, s);
        for (int g = 0; g < job->n_kv_heads; g++)
            for (int i = 0; i < span.n_rows; i++)
                for (int h = 0; h < job->n_heads / job->n_kv_heads; h++) {
                    struct attn_row row = row_at(job, &span, g, i, h, be->dtype);
                    work(be, job, &row);
                }
    }
}

/* scale * q . k_j of a row, capped. */
static double score(enum dtype type, const struct attn_job *job, const struct attn_row *row, int j)
{
    const double x = (double)job->scale * row_dot(type, row_of(type, job->q, row->at, job->head_dim),
                                                  row_of(type, row->keys.k, (size_t)j, job->head_dim), job->head_dim);
    return job->cap > 0 ? (double)job->cap * tanh(x / (double)job->cap) : x;
}

/* Column c of a row's result x, merged with that over other keys where there is one. */
static double merged(const struct attn_job *job, const struct attn_row *row, int c, double x, float lse)
{
    if (!job->other_part)
        return x;
    double other = (double)job->other_lse[row->at], own = (double)lse;
    double share = other == own ? 0.5 : 1 / (1 + exp(own - other)); // both may be -INFINITY
    return share * (double)job->other_part[row->at * (size_t)job->head_dim + (size_t)c] +
           (1 - share) * (double)(float)x;
}

static void attend_row(struct backend *be, const struct attn_job *job, const struct attn_row *row)
{
    int K = job->head_dim, n = row->keys.n;
    bool any = row->first < n;
    double sink = job->sinks ? (double)job->sinks[row->head] : -(double)INFINITY, max = sink,
           weighted[MAX_HEAD_DIM] = { 0 };

    assert(K <= MAX_HEAD_DIM);
    for (int j = row->first; j < n; j++)
        max = fmax(max, score(be->dtype, job, row, j));
    double total = job->sinks ? exp(sink - max) : 0;
    for (int j = row->first; j < n; j++) {
        double w = exp(score(be->dtype, job, row, j) - max);
        const void *v = row_of(be->dtype, row->keys.v, (size_t)j, K);
        total += w;
        for (int c = 0; c < K; c++)
            weighted[c] += w * number_get(be->dtype, v, (size_t)c);
    }
    float lse = any || job->sinks ? (float)(max + log(total)) : -INFINITY;
    for (int c = 0; c < K; c++) {
        double x = any ? weighted[c] / total : 0;
        if (job->out.at)
            mat_put(job->out, row->token, row->head * K + c, merged(job, row, c, x, lse));
        if (job->part)
            job->part[row->at * (size_t)K + (size_t)c] = (float)x;
    }
    if (job->lse)
        job->lse[row->at] = lse;
}

void reference_attend(struct backend *be, const struct attn_job *job)
{
    assert(!job->out.at || (job->out.type == be->dtype && job->out.cols == job->n_heads * job->head_dim));
    each_row(be, job, attend_row);
}

/* ---- attention as scores ----------------------------------------------- */

/* The attention that key j of head g gets from all rows of the span. */
static double column_of(struct backend *be, const struct column_job *job, const struct attn_span *span, int g, int j)
{
    const struct attn_job *attn = &job->attn;
    int group = attn->n_heads / attn->n_kv_heads;
    double sum = 0, max = 0;

    for (int i = 0; i < span->n_rows; i++)
        for (int h = 0; h < group; h++) {
            struct attn_row row = row_at(attn, span, g, i, h, be->dtype);
            if (j >= row.keys.n)
                continue;
            double p = exp(score(be->dtype, attn, &row, j) - (double)attn->lse[row.at]);
            sum += p;
            max = fmax(max, p);
        }
    return job->stat == COLUMN_MAX ? max : job->stat == COLUMN_SUM ? sum : sum / (span->n_rows * group);
}

void reference_column_stats(struct backend *be, const struct column_job *job)
{
    struct attn_span span = span_of(&job->attn.spans, 0);

    assert(job->attn.kind == ATTN_TEXT && job->attn.spans.n == 1 && job->attn.window == 0);
    for (int g = 0; g < job->attn.n_kv_heads; g++) {
        float *column = job->column + (size_t)g * job->pitch;
        for (int j = 0; j < span.n_keys; j++) {
            double x = column_of(be, job, &span, g, j);
            if (job->into == COLUMN_ADD)
                x = job->stat == COLUMN_MAX ? fmax(x, (double)column[j]) : x + (double)column[j];
            column[j] = (float)x;
        }
    }
}

/* ---- slots ------------------------------------------------------------- */

void reference_copy_slots(struct backend *be, const struct kv_store *store, const struct kv_shape *shape,
                          const struct slot_copy *copy)
{
    size_t row = (size_t)shape->head_dim * dtype_size(be->dtype), bytes = (size_t)copy->n * row;

    for (int i = 0; i < copy->n_to; i++)
        for (int head = 0; head < kv_all_layers(shape) * shape->n_kv_heads; head++) {
            size_t first = (size_t)head * store->head_rows, from = (first + (size_t)copy->from) * row,
                   to = (first + (size_t)copy->to[i]) * row;
            memcpy((char *)store->k + to, (const char *)store->k + from, bytes);
            memcpy((char *)store->v + to, (const char *)store->v + from, bytes);
        }
}

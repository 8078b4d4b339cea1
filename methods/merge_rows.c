/* merge_rows.c - gives a merging method the heads one by one, on the host, and writes the changed values back as
 * payloads hold them, rounded to bf16. */
#include "methods/variant_internal.h"

#include "codes/half.h"
#include "methods/head_work.h"

#include <stdlib.h>
#include <string.h>

struct merging {
    const struct kv_full *full;
    const struct merge_job *job;
    int32_t *kept;  // as in the job
    size_t *first;  // [L * G]: where a head's positions begin in kept
    float *score;   // (L * G, T) or NULL
    float *v;       // (G, T, K): the values that the heads of one layer keep
    uint16_t *bf16; // (T, K): one head's
};

static void merging_release(struct merging *m)
{
    free(m->kept);
    free(m->first);
    free(m->score);
    free(m->v);
    free(m->bf16);
}

static int merging_init(struct merging *m, struct err *err)
{
    const struct kv_full *full = m->full;
    const struct merge_job *job = m->job;
    size_t n_heads = (size_t)(full->shape.n_layers * full->shape.n_kv_heads), next = 0;
    size_t row = (size_t)full->shape.head_dim, T = (size_t)full->n_tokens;

    m->kept = malloc(job->kept_bytes);
    m->first = malloc(n_heads * sizeof(*m->first));
    m->score = job->scores ? malloc(n_heads * T * sizeof(float)) : NULL;
    m->v = malloc((size_t)full->shape.n_kv_heads * T * row * sizeof(float));
    m->bf16 = malloc(T * row * sizeof(*m->bf16));
    if (!m->kept || !m->first || (job->scores && !m->score) || !m->v || !m->bf16)
        return err_nomem(err);
    for (size_t h = 0; h < n_heads; next += (size_t)job->rows[h++].n)
        m->first[h] = next;
    if (full->backend->read(full->backend, m->kept, job->kept, job->kept_bytes, err))
        return err->code;
    return m->score ? full->backend->read(full->backend, m->score, job->scores, n_heads * T * sizeof(float), err) : 0;
}

static float *values_of(const struct merging *m, int g)
{
    return m->v + (size_t)g * (size_t)m->full->n_tokens * (size_t)m->full->shape.head_dim;
}

static int merge_head(const struct evp_head *head, void *arg, struct err *err)
{
    const struct merging *m = arg;
    size_t h = (size_t)(head->layer * head->n_kv_heads + head->head), row = (size_t)head->head_dim;
    const struct host_kept kept = { .at = m->kept + m->first[h],
                                    .n = m->job->rows[h].n,
                                    .score = m->score ? m->score + h * (size_t)head->n_tokens : NULL };
    float *v = values_of(m, head->head);

    for (size_t i = 0; i < (size_t)kept.n; i++)
        memcpy(v + i * row, head->v + (size_t)kept.at[i] * row, row * sizeof(*v));
    return m->job->stage->method->merge->merge(head, &kept, m->job->stage->value, v, err);
}

static int write_layer(int layer, void *arg, struct err *err)
{
    const struct merging *m = arg;
    struct backend *be = m->full->backend;

    (void)err;
    for (int g = 0; g < m->full->shape.n_kv_heads; g++) {
        const struct kv_rows *rows = &m->job->rows[layer * m->full->shape.n_kv_heads + g];
        float *v = values_of(m, g);
        size_t n = (size_t)rows->n * (size_t)m->full->shape.head_dim;
        for (size_t i = 0; i < n; i++)
            v[i] = bf16_to_f32(bf16_from_f32(v[i])); // as payloads hold it
        write_from_f32(be, rows->v, v, n, m->bf16);
    }
    return 0;
}

int merge_rows(const struct kv_full *full, const struct merge_job *job, struct err *err)
{
    struct merging m = { .full = full, .job = job };
    const struct host_work work = { .head = merge_head, .layer = write_layer, .arg = &m };
    int code = merging_init(&m, err);

    if (!code)
        code = host_each_head(full, &work, err);
    merging_release(&m);
    return code;
}

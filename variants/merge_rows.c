/* merge_rows.c - gives a merging method the heads one by one, on the host, and writes the changed values back as
 * payloads hold them, rounded to bf16. */
#include "variants/variant_internal.h"

#include "codes/half.h"
#include "methods/head_work.h"

#include <stdlib.h>
#include <string.h>

struct merging {
    const struct making *of;
    int32_t *kept;  // as there, in host memory
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
    const struct kv_full *full = m->of->full;
    const float *scores = m->of->merged ? m->of->merged->at : NULL;
    size_t n_heads = (size_t)(full->shape.n_layers * full->shape.n_kv_heads), next = 0;
    size_t row = (size_t)full->shape.head_dim, T = (size_t)full->n_tokens;

    m->first = malloc(n_heads * sizeof(*m->first));
    for (size_t h = 0; m->first && h < n_heads; next += (size_t)m->of->lengths[h++])
        m->first[h] = next;
    m->kept = malloc(next * sizeof(*m->kept));
    m->score = scores ? malloc(n_heads * T * sizeof(float)) : NULL;
    m->v = malloc((size_t)full->shape.n_kv_heads * T * row * sizeof(float));
    m->bf16 = malloc(T * row * sizeof(*m->bf16));
    if (!m->kept || !m->first || (scores && !m->score) || !m->v || !m->bf16)
        return err_nomem(err);
    if (full->backend->read(full->backend, m->kept, m->of->kept, next * sizeof(*m->kept), err))
        return err->code;
    return m->score ? full->backend->read(full->backend, m->score, scores, n_heads * T * sizeof(float), err) : 0;
}

static float *values_of(const struct merging *m, int g)
{
    return m->v + (size_t)g * (size_t)m->of->full->n_tokens * (size_t)m->of->full->shape.head_dim;
}

static int merge_head(const struct evp_head *head, void *arg, struct err *err)
{
    const struct merging *m = arg;
    const struct config *config = m->of->v->config;
    size_t h = (size_t)(head->layer * head->n_kv_heads + head->head), row = (size_t)head->head_dim;
    const struct host_kept kept = { .at = m->kept + m->first[h],
                                    .n = m->of->lengths[h],
                                    .score = m->score ? m->score + h * (size_t)head->n_tokens : NULL };
    float *v = values_of(m, head->head);

    for (size_t i = 0; i < (size_t)kept.n; i++)
        memcpy(v + i * row, head->v + (size_t)kept.at[i] * row, row * sizeof(*v));
    return config->merge->merge(head, &kept, config->stage[METHOD_MERGE].value, v, err);
}

static int write_layer(int layer, void *arg, struct err *err)
{
    const struct merging *m = arg;
    const struct kv_shape *shape = &m->of->full->shape;

    (void)err;
    for (int g = 0; g < shape->n_kv_heads; g++) {
        const struct kv_rows *rows = &m->of->v->rows[layer * shape->n_kv_heads + g];
        float *v = values_of(m, g);
        size_t n = (size_t)rows->n * (size_t)shape->head_dim;
        for (size_t i = 0; i < n; i++)
            v[i] = bf16_to_f32(bf16_from_f32(v[i])); // as payloads hold it
        write_from_f32(m->of->full->backend, rows->v, v, n, m->bf16);
    }
    return 0;
}

int merge_rows(const struct making *m, struct err *err)
{
    struct merging merging = { .of = m };
    const struct host_work work = { .head = merge_head, .layer = write_layer, .arg = &merging };
    int code = merging_init(&merging, err);

    if (!code)
        code = host_each_head(m->full, &work, err);
    merging_release(&merging);
    return code;
}

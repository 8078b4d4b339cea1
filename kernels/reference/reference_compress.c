/* reference_compress.c - compression as the contracts in backend.h define it, one element at a time. */
#include "kernels/reference/reference.h"

#include "kernels/order.h"

#include <math.h>
#include <stdlib.h>

/* ---- scores ------------------------------------------------------------ */

static const void *key(const struct backend *be, const struct kv_rows *head, int t, int K)
{
    return row_of(be->dtype, head->k, (size_t)t, K);
}

static double key_norm(const struct backend *be, const struct kv_rows *head, int t, int K)
{
    return sqrt(row_dot(be->dtype, key(be, head, t, K), key(be, head, t, K), K));
}

void reference_key_norms(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    for (int h = 0; h < n_heads; h++)
        for (int t = 0; t < heads[h].n; t++, score++)
            *score = (float)-key_norm(be, &heads[h], t, head_dim);
}

/* Coordinate c of the mean direction of a head's keys. */
static double mean_direction(const struct backend *be, const struct kv_rows *head, int c, int K)
{
    double sum = 0;

    for (int t = 0; t < head->n; t++)
        sum += number_get(be->dtype, key(be, head, t, K), (size_t)c) / fmax(key_norm(be, head, t, K), 1e-12);
    return sum / head->n;
}

void reference_key_cosines(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    for (int h = 0; h < n_heads; h++) {
        double mean[1024], squares = 0;
        assert(head_dim <= 1024);
        for (int c = 0; c < head_dim; c++) {
            mean[c] = mean_direction(be, &heads[h], c, head_dim);
            squares += mean[c] * mean[c];
        }
        double norm = fmax(sqrt(squares), 1e-8);
        for (int t = 0; t < heads[h].n; t++, score++) {
            double sum = 0;
            for (int c = 0; c < head_dim; c++)
                sum += number_get(be->dtype, key(be, &heads[h], t, head_dim), (size_t)c) * mean[c];
            *score = (float)(-sum / (fmax(key_norm(be, &heads[h], t, head_dim), 1e-8) * norm));
        }
    }
}

/* ---- forms of queries and keys ------------------------------------------ */

/* Number i of a row of K numbers and a 1. */
static double with_one(const struct backend *be, const void *row, int i, int K)
{
    return i < K ? number_get(be->dtype, row, (size_t)i) : 1;
}

static const void *query(const struct backend *be, const struct moment_job *job, int h, int t)
{
    int group = job->n_heads / job->n_kv_heads;
    size_t row = ((size_t)(h / group) * (size_t)job->n_tokens + (size_t)t) * (size_t)group + (size_t)(h % group);

    return row_of(be->dtype, job->q, row, job->head_dim);
}

void reference_moments(struct backend *be, const struct moment_job *job)
{
    int K = job->head_dim;
    float *into = job->into;

    for (int h = 0; h < job->n_heads; h++)
        for (int i = 0; i <= K; i++)
            for (int j = 0; j < K; j++, into++) {
                double sum = (double)*into;
                for (int t = job->first; t < job->n_tokens; t++) {
                    const void *q = query(be, job, h, t);
                    sum += with_one(be, q, i, K) * with_one(be, q, j, K);
                }
                *into = (float)sum;
            }
}

void reference_key_forms(struct backend *be, float *score, const float *form, const struct kv_rows *heads, int n_heads,
                         int group, int head_dim)
{
    for (int h = 0; h < n_heads * group; h++, form += (head_dim + 1) * head_dim)
        for (int t = 0; t < heads[h / group].n; t++, score++) {
            const void *k = key(be, &heads[h / group], t, head_dim);
            double sum = 0;
            for (int i = 0; i <= head_dim; i++)
                for (int j = 0; j < head_dim; j++)
                    sum += with_one(be, k, i, head_dim) * (double)form[i * head_dim + j] * with_one(be, k, j, head_dim);
            *score = (float)sum;
        }
}

/* ---- rows of numbers ----------------------------------------------------- */

void reference_abs_sums(struct backend *be, float *sum, struct mat x)
{
    (void)be;
    assert(x.type == DTYPE_F32);
    for (int t = 0; t < x.rows; t++) {
        double all = 0;
        for (int i = 0; i < x.cols; i++)
            all += fabs(mat_get(x, t, i));
        sum[t] = (float)all;
    }
}

void reference_avg_pool(struct backend *be, float *score, int n_heads, int n, int pitch, int width)
{
    int half = width / 2;

    (void)be;
    for (int h = 0; h < n_heads; h++, score += pitch) {
        float before[4096]; // a ring: the original scores at the last `half` positions
        assert(half < 4096);
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int j = i - half; j <= i + half; j++)
                sum += j < 0 || j >= n ? 0 : (double)(j < i ? before[j % 4096] : score[j]);
            before[i % 4096] = score[i];
            score[i] = (float)(sum / width);
        }
    }
}

void reference_scale_columns(struct backend *be, float *score, int n_heads, int n, const float *factor)
{
    (void)be;
    for (int h = 0; h < n_heads; h++)
        for (int t = 0; t < n; t++)
            *score++ *= factor[t];
}

void reference_mean_heads(struct backend *be, float *score, int n_heads, int n, int group)
{
    (void)be;
    assert(n_heads % group == 0);
    for (int first = 0; first < n_heads; first += group)
        for (int t = 0; t < n; t++) {
            float *at = score + (size_t)first * (size_t)n + (size_t)t;
            double sum = 0;
            for (int h = 0; h < group; h++)
                sum += (double)at[(size_t)h * (size_t)n];
            for (int h = 0; h < group; h++)
                at[(size_t)h * (size_t)n] = (float)(sum / group);
        }
}

/* ---- selection --------------------------------------------------------- */

/* The rank of position i: larger scores first, then lower positions. */
static int rank(const float *score, int n, int i)
{
    uint32_t mine = score_order(score[i]);
    int before = 0;

    for (int j = 0; j < n; j++)
        before += score_order(score[j]) > mine || (score_order(score[j]) == mine && j < i);
    return before;
}

/* The k positions of one row. */
static void top_k(int32_t *kept, const float *score, int n, int k)
{
    uint32_t lowest = 0; // of the k largest
    int n_alike = k;     // to be kept of the scores like it

    for (int i = 0; i < n; i++)
        lowest = rank(score, n, i) == k - 1 ? score_order(score[i]) : lowest;
    const uint32_t above = score_order_above(lowest), below = score_order_below(lowest);
    for (int i = 0; i < n; i++)
        n_alike -= score_order(score[i]) > above;
    for (int i = 0; i < n; i++) {
        uint32_t order = score_order(score[i]);
        if (order > above || (order >= below && n_alike-- > 0))
            *kept++ = i;
    }
}

void reference_top_k(struct backend *be, int32_t *kept, const float *score, int n_heads, int n, const int *k)
{
    (void)be;
    for (int h = 0; h < n_heads; h++) {
        if (k[h] > 0)
            top_k(kept, score + (size_t)h * (size_t)n, n, k[h]);
        kept += k[h];
    }
}

void reference_gather(struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                      int n_heads, int head_dim)
{
    size_t row = (size_t)head_dim * dtype_size(be->dtype);

    for (int h = 0; h < n_heads; h++)
        for (int i = 0; i < dst[h].n; i++, kept++) {
            memcpy((char *)dst[h].k + (size_t)i * row, (const char *)src[h].k + (size_t)*kept * row, row);
            memcpy((char *)dst[h].v + (size_t)i * row, (const char *)src[h].v + (size_t)*kept * row, row);
        }
}

/* ---- budgets per head -------------------------------------------------- */

/* A score of a layer. order: UINT64_MAX for the floor largest of each head, so they sort first; else score_order(). */
struct joint_score {
    uint64_t order;
    int32_t head, at;
};

/* Descending; then by head, then by position. */
static int compare_joint(const void *a, const void *b)
{
    const struct joint_score *x = a, *y = b;

    if (x->order != y->order)
        return x->order > y->order ? -1 : 1;
    return x->head != y->head ? x->head - y->head : x->at - y->at;
}

/* Sorts the scores of `group` heads; the floor largest of each head come first. */
static void sort_joint(struct joint_score *s, const float *score, int n, int group, int floor)
{
    for (int32_t h = 0; h < group; h++) {
        struct joint_score *head = s + (size_t)h * (size_t)n;
        for (int32_t t = 0; t < n; t++)
            head[t] = (struct joint_score){ score_order(score[(size_t)h * (size_t)n + (size_t)t]), h, t };
        qsort(head, (size_t)n, sizeof(*head), compare_joint);
        for (int t = 0; t < floor; t++)
            head[t].order = UINT64_MAX;
    }
    qsort(s, (size_t)group * (size_t)n, sizeof(*s), compare_joint);
}

void reference_joint_counts(struct backend *be, int32_t *count, const float *score, int n_heads, int n, int group,
                            const struct joint_keep *keep)
{
    size_t n_scores = (size_t)group * (size_t)n;
    struct joint_score *s = reference_scratch(be, n_scores * sizeof(*s));

    assert(n_heads % group == 0);
    for (int first = 0; s && first < n_heads; first += group, keep++) {
        assert(keep->floor <= n && (size_t)keep->n_keep <= n_scores && keep->floor * group <= keep->n_keep);
        sort_joint(s, score + (size_t)first * (size_t)n, n, group, keep->floor);
        for (int h = 0; h < group; h++)
            count[first + h] = 0;
        for (int i = 0; i < keep->n_keep; i++)
            count[first + s[i].head]++;
    }
    free(s);
}

/* ---- quantising -------------------------------------------------------- */

/* One group: `group` numbers, `stride` apart. */
struct quant_group {
    enum dtype type;
    void *x;
    size_t stride;
    int32_t *codes; // group * bits / 32 words
    uint16_t *scale, *zero;
};

/* Group j of line i. */
static struct quant_group get_group(const struct quant_item *q, enum dtype type, int i, int j)
{
    int n = q->lines == QUANT_COLUMNS ? q->rows : q->cols; // length of a line
    size_t group = (size_t)i * (size_t)(n / q->group) + (size_t)j;
    size_t along = q->lines == QUANT_COLUMNS ? (size_t)q->cols : 1,
           across = q->lines == QUANT_COLUMNS ? 1 : (size_t)q->cols;

    return (struct quant_group){
        .type = type,
        .x = (char *)q->x + ((size_t)i * across + (size_t)(j * q->group) * along) * dtype_size(type),
        .stride = along,
        .codes = q->codes + group * (size_t)(q->group * q->bits / 32),
        .scale = q->scales + group,
        .zero = q->zeros + group,
    };
}

static float number_of(const struct quant_group *s, int i)
{
    return (float)number_get(s->type, s->x, (size_t)i * s->stride);
}

static void quantise_group(const struct quant_group *s, int group, int bits)
{
    float min = number_of(s, 0), max = min, top = (float)((1 << bits) - 1);
    int per_word = 32 / bits;

    for (int i = 1; i < group; i++) {
        min = fminf(min, number_of(s, i));
        max = fmaxf(max, number_of(s, i));
    }
    *s->zero = f16_from_f32_finite(min);
    *s->scale = f16_from_f32_finite((max - f16_to_f32(*s->zero)) / top);
    float zero = f16_to_f32(*s->zero), scale = f16_to_f32(*s->scale);
    memset(s->codes, 0, (size_t)(group / per_word) * sizeof(*s->codes));
    for (int i = 0; i < group && scale > 0; i++) {
        float code = rintf(fminf(fmaxf((number_of(s, i) - zero) / scale, 0), top));
        s->codes[i / per_word] = (int32_t)((uint32_t)s->codes[i / per_word] | (uint32_t)code << i % per_word * bits);
    }
}

static void dequantise_group(const struct quant_group *s, int group, int bits)
{
    float zero = f16_to_f32(*s->zero), scale = f16_to_f32(*s->scale);
    uint32_t mask = (1u << bits) - 1;
    int per_word = 32 / bits;

    for (int i = 0; i < group; i++) {
        uint32_t code = (uint32_t)s->codes[i / per_word] >> i % per_word * bits & mask;
        number_put(s->type, s->x, (size_t)i * s->stride, (double)((float)code * scale + zero));
    }
}

static void each_group(const struct backend *be, const struct quant_item *q,
                       void (*work)(const struct quant_group *, int, int))
{
    bool columns = q->lines == QUANT_COLUMNS;
    int n_lines = columns ? q->cols : q->rows, n_groups = (columns ? q->rows : q->cols) / q->group;

    for (int i = 0; i < n_lines; i++) {
        for (int j = 0; j < n_groups; j++) {
            struct quant_group s = get_group(q, be->dtype, i, j);
            work(&s, q->group, q->bits);
        }
    }
}

static void get_row(const struct backend *be, const struct quant_item *q, int row, float *x)
{
    for (int j = 0; j < q->cols; j++)
        x[j] = (float)number_get(be->dtype, q->x, (size_t)row * (size_t)q->cols + (size_t)j);
}

static void quantise_rows(struct backend *be, const struct quant_item *q, float *x)
{
    float *column = reference_scratch(be, QUANT_PARTS * (size_t)q->cols * sizeof(*column));

    for (int i = 0; column && i < QUANT_PARTS * q->cols; i++)
        column[i] = 0;
    for (int i = 0; column && i < q->rows; i++) {
        float *part = column + i % QUANT_PARTS * q->cols;
        get_row(be, q, i, x);
        for (int j = 0; j < q->cols; j++)
            part[j] = quant_column(&q->row, part[j], x[j]);
    }
    if (column && quant_row_bytes(&q->row).head)
        quant_head_pack(&q->row, q->at.head, column);
    free(column);
    for (int i = 0; i < q->rows; i++) {
        const struct quant_at at = quant_row_at(&q->row, &q->at, (size_t)i);
        get_row(be, q, i, x);
        quant_row_pack(&q->row, &at, x);
    }
}

static void dequantise_rows(struct backend *be, const struct quant_item *q, float *x)
{
    for (int i = 0; i < q->rows; i++) {
        const struct quant_at at = quant_row_at(&q->row, &q->at, (size_t)i);
        quant_row_unpack(&q->row, &at, x);
        for (int j = 0; j < q->cols; j++)
            number_put(be->dtype, q->x, (size_t)i * (size_t)q->cols + (size_t)j, (double)x[j]);
    }
}

static void each_item(struct backend *be, const struct quant_item *item, int n_items,
                      void (*groups)(const struct quant_group *, int, int),
                      void (*rows)(struct backend *, const struct quant_item *, float *))
{
    for (int i = 0; i < n_items; i++) {
        float *x = reference_scratch(be, quant_row_work(&item[i].row) * sizeof(*x));
        if (item[i].row.format == QUANT_MINMAX)
            each_group(be, &item[i], groups);
        else if (x)
            rows(be, &item[i], x);
        free(x);
    }
}

void reference_quantise(struct backend *be, const struct quant_item *item, int n_items)
{
    each_item(be, item, n_items, quantise_group, quantise_rows);
}

void reference_dequantise(struct backend *be, const struct quant_item *item, int n_items)
{
    each_item(be, item, n_items, dequantise_group, dequantise_rows);
}

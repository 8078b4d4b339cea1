/* reference_dense.c - matrix ops, one element at a time, as backend.h defines them; every sum in double. */
#include "kernels/reference/reference.h"

#include "kernels/softmax.h"

#include <math.h>
#include <stdlib.h>

struct weight *reference_weight_new(struct backend *be, const struct mat *host, int n_parts, struct err *err)
{
    struct weight *w = calloc(1, sizeof(*w));

    if (!w) {
        err_nomem(err);
        return NULL;
    }
    w->in = host[0].cols;
    for (int p = 0; p < n_parts; p++)
        w->out += host[p].rows;
    w->at = be->alloc(be, reference_weight_bytes(be, w->out, w->in).kept, err);
    if (!w->at) {
        free(w);
        return NULL;
    }
    size_t n = 0;
    for (int p = 0; p < n_parts; p++)
        for (int i = 0; i < host[p].rows; i++)
            for (int j = 0; j < w->in; j++)
                number_put(be->dtype, w->at, n++, mat_get(host[p], i, j));
    return w;
}

void reference_weight_free(struct backend *be, struct weight *w)
{
    if (!w)
        return;
    be->free(be, w->at);
    free(w);
}

struct weight_bytes reference_weight_bytes(struct backend *be, int out, int in)
{
    return (struct weight_bytes){ .kept = (size_t)out * (size_t)in * dtype_size(be->dtype) };
}

/* Row t of x times row o of the weight. */
static double product(const struct backend *be, struct mat x, int t, const struct weight *w, int o)
{
    double sum = 0;

    for (int i = 0; i < w->in; i++)
        sum += mat_get(x, t, i) * number_get(be->dtype, w->at, (size_t)o * (size_t)w->in + (size_t)i);
    return sum;
}

void reference_gemm(struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,
                    enum gemm_into into)
{
    assert(x.cols == w->in && out.cols == w->out && out.rows == x.rows);
    assert(x.type == be->dtype && (out.type == DTYPE_F32 || (into == GEMM_SET && out.type == be->dtype)));
    assert(x.pitch == x.cols && out.pitch == out.cols);
    for (int t = 0; t < x.rows; t++)
        for (int o = 0; o < w->out; o++)
            mat_put(out, t, o,
                    product(be, x, t, w, o) + (bias ? (double)bias[o] : 0) +
                        (into == GEMM_ADD ? mat_get(out, t, o) : 0));
}

void reference_embed(struct backend *be, struct mat out, struct mat table, const int32_t *ids)
{
    (void)be;
    assert(out.type == DTYPE_F32);
    for (int t = 0; t < out.rows; t++) {
        assert(ids[t] >= 0 && ids[t] < table.rows);
        for (int i = 0; i < out.cols; i++)
            mat_put(out, t, i, mat_get(table, ids[t], i));
    }
}

void reference_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps, enum gemm_into into)
{
    assert(x.type == DTYPE_F32 && out.type == (into == GEMM_ADD ? DTYPE_F32 : be->dtype));
    for (int t = 0; t < x.rows; t++) {
        double squares = 0;
        for (int i = 0; i < x.cols; i++)
            squares += mat_get(x, t, i) * mat_get(x, t, i);
        double scale = 1 / sqrt(squares / x.cols + (double)eps);
        for (int i = 0; i < x.cols; i++)
            mat_put(out, t, i, (into == GEMM_ADD ? mat_get(out, t, i) : 0) + mat_get(x, t, i) * scale * (double)w[i]);
    }
}

/* Writes token t's head, the K columns of qkv from `column`, to `to`: normalised by w unless NULL, then its first
 * `rotary` columns rotated by the angles of the token's position, if the job has any. */
static void place_head(const struct rope_job *job, int t, int column, const float *w, void *to)
{
    int K = job->head_dim, rotated = job->cos ? job->rotary : 0, half = rotated / 2;
    double squares = 0;

    for (int i = 0; i < K; i++)
        squares += mat_get(job->qkv, t, column + i) * mat_get(job->qkv, t, column + i);
    double scale = w ? 1 / sqrt(squares / K + (double)job->norm_eps) : 1;
    for (int i = 0; i < half; i++) {
        double a = mat_get(job->qkv, t, column + i) * scale * (w ? (double)w[i] : 1),
               b = mat_get(job->qkv, t, column + half + i) * scale * (w ? (double)w[half + i] : 1);
        size_t angle = (size_t)job->position[t] * (size_t)half + (size_t)i;
        double c = (double)job->cos[angle], s = (double)job->sin[angle];
        number_put(job->qkv.type, to, (size_t)i, a * c - b * s);
        number_put(job->qkv.type, to, (size_t)(half + i), b * c + a * s);
    }
    for (int i = rotated; i < K; i++)
        number_put(job->qkv.type, to, (size_t)i, mat_get(job->qkv, t, column + i) * scale * (w ? (double)w[i] : 1));
}

void reference_rope(struct backend *be, const struct rope_job *job)
{
    int K = job->head_dim, H = job->n_heads, G = job->n_kv_heads, group = H / G, T = job->qkv.rows;
    size_t size = dtype_size(be->dtype), row = (size_t)K * size;

    assert(job->qkv.type == be->dtype && job->qkv.cols == (H + 2 * G) * K);
    assert(!job->cos || (job->rotary <= K && job->rotary % 2 == 0));
    for (int t = 0; t < T; t++) {
        for (int h = 0; h < H; h++) {
            size_t at = ((size_t)(h / group) * (size_t)T + (size_t)t) * (size_t)group + (size_t)(h % group);
            place_head(job, t, h * K, job->q_norm, (char *)job->q + at * row);
        }
        for (int g = 0; g < G; g++) {
            size_t at = ((size_t)(job->layer * G + g) * job->store.head_rows + (size_t)job->slot[t]) * row,
                   v = ((size_t)t * (size_t)job->qkv.pitch + (size_t)((H + G + g) * K)) * size;
            place_head(job, t, (H + g) * K, job->k_norm, (char *)job->store.k + at);
            memcpy((char *)job->store.v + at, (const char *)job->qkv.at + v, row);
        }
    }
}

static double gated(enum gate gate, double x, double up)
{
    if (gate == GATE_CLAMPED) {
        x = fmin(x, CLAMPED_AT);
        up = fmin(fmax(up, -CLAMPED_AT), CLAMPED_AT) + 1;
    }
    double y = gate == GATE_GELU      ? GELU_STEEP * (x + GELU_CUBE * x * x * x)
               : gate == GATE_CLAMPED ? CLAMPED_STEEP * x
                                      : x;
    return x / (1 + exp(-y)) * up;
}

void reference_gate_mul(struct backend *be, struct mat out, struct mat gate_up, enum gate gate)
{
    assert(out.type == be->dtype && gate_up.type == be->dtype);
    for (int t = 0; t < out.rows; t++)
        for (int i = 0; i < out.cols; i++)
            mat_put(out, t, i, gated(gate, mat_get(gate_up, t, i), mat_get(gate_up, t, out.cols + i)));
}

/* ---- experts ----------------------------------------------------------- */

/* The rank of expert e for a row with these logits: larger logits first, then lower numbers. */
static int rank(const double *logit, int n, int e)
{
    int before = 0;

    for (int i = 0; i < n; i++)
        before += logit[i] > logit[e] || (logit[i] == logit[e] && i < e);
    return before;
}

/* The log of the sum of e^logit over all experts; with `renormalise` over the chosen ones. */
static double log_total(const double *logit, const struct experts *experts)
{
    double max = -(double)INFINITY, total = 0;

    for (int e = 0; e < experts->n; e++)
        max = fmax(max, logit[e]);
    for (int e = 0; e < experts->n; e++)
        if (!experts->renormalise || rank(logit, experts->n, e) < experts->n_used)
            total += exp(logit[e] - max);
    return max + log(total);
}

/* Adds expert e's output for row t to row t of x. gate_up (2F) and hidden (F) are of the backend's dtype, as in a layer
 * without experts. */
static void add_expert(struct backend *be, struct mat x, struct mat normed, int t, const struct experts *experts, int e,
                       double weight, struct mat gate_up, struct mat hidden)
{
    const float *gate_up_bias = experts->gate_up_bias ? experts->gate_up_bias + e * gate_up.cols : NULL,
                *down_bias = experts->down_bias ? experts->down_bias + e * x.cols : NULL;

    for (int o = 0; o < gate_up.cols; o++)
        mat_put(gate_up, 0, o,
                product(be, normed, t, experts->gate_up[e], o) + (gate_up_bias ? (double)gate_up_bias[o] : 0));
    reference_gate_mul(be, hidden, gate_up, experts->gate);
    for (int o = 0; o < x.cols; o++)
        mat_put(x, t, o,
                mat_get(x, t, o) +
                    weight * (product(be, hidden, 0, experts->down[e], o) + (down_bias ? (double)down_bias[o] : 0)));
}

void reference_moe(struct backend *be, struct mat x, struct mat normed, const struct experts *experts)
{
    int F = experts->width;
    double *logit = reference_scratch(be, (size_t)experts->n * sizeof(*logit));
    void *inner = reference_scratch(be, 3 * (size_t)F * sizeof(float));

    assert(x.type == DTYPE_F32 && normed.type == be->dtype && experts->n_used <= experts->n);
    if (logit && inner) {
        struct mat gate_up = { inner, be->dtype, 1, 2 * F, 2 * F },
                   hidden = { (char *)inner + 2 * (size_t)F * sizeof(float), be->dtype, 1, F, F };
        for (int t = 0; t < x.rows; t++) {
            for (int e = 0; e < experts->n; e++)
                logit[e] = (double)(float)(product(be, normed, t, experts->router, e) +
                                           (experts->router_bias ? (double)experts->router_bias[e] : 0));
            double total = log_total(logit, experts);
            for (int e = 0; e < experts->n; e++)
                if (rank(logit, experts->n, e) < experts->n_used)
                    add_expert(be, x, normed, t, experts, e, exp(logit[e] - total), gate_up, hidden);
        }
    }
    free(logit);
    free(inner);
}

/* ---- the next token ---------------------------------------------------- */

void reference_best(struct backend *be, struct best *best, struct mat x, const struct weight *head)
{
    assert(x.type == be->dtype && x.cols == head->in);
    for (int t = 0; t < x.rows; t++) {
        struct best b = { 0, -INFINITY, -INFINITY };
        bool finite = true;
        for (int o = 0; o < head->out; o++) {
            float logit = (float)product(be, x, t, head, o);
            finite = finite && isfinite(logit);
            if (o == 0 || logit > b.value)
                b = (struct best){ o, logit, b.value };
            else if (logit > b.second)
                b.second = logit;
        }
        if (!finite)
            b.id = -1;
        best[t] = b;
    }
}

/* The first token up to which the sum of weights exceeds `point`; n: none. *sum: the sum then. */
static int32_t add_weights(const float *logit, int n, const float of[2], double point, double *sum)
{
    double before = 0;

    for (int first = 0; first < n; first += SOFTMAX_BLOCK, before = *sum) {
        double block = 0;
        for (int i = first; i < n && i < first + SOFTMAX_BLOCK; i++) {
            block += (double)softmax_weight(logit[i], of[0], of[1]);
            *sum = before + block;
            if (*sum > point)
                return i;
        }
    }
    return n;
}

static struct drawn_token draw_row(const float *logit, int n, const struct draw_job *job, int t)
{
    float of[] = { logit[0], softmax_inverse(job->temperature) }; // the largest, 1 / temperature
    double sum = 0, below;

    for (int i = 0; i < n; i++) {
        if (!isfinite(logit[i]))
            return (struct drawn_token){ -1, 0, (double)NAN };
        of[0] = logit[i] > of[0] ? logit[i] : of[0];
    }
    add_weights(logit, n, of, (double)INFINITY, &sum);
    int32_t id = job->given ? job->given[t] : add_weights(logit, n, of, job->unit[t] * sum, &below);
    assert(id < n);
    return (struct drawn_token){ id, of[0] - logit[id], sum };
}

void reference_draw(struct backend *be, struct drawn_token *drawn, struct mat x, const struct weight *head,
                    const struct draw_job *job)
{
    float *logit = reference_scratch(be, (size_t)head->out * sizeof(*logit));

    assert(x.type == be->dtype && x.cols == head->in && !job->unit != !job->given && job->temperature > 0);
    for (int t = 0; t < x.rows && logit; t++) {
        for (int o = 0; o < head->out; o++)
            logit[o] = (float)product(be, x, t, head, o);
        for (int o = 0; o < head->out && job->cap > 0; o++)
            logit[o] = (float)((double)job->cap * tanh((double)logit[o] / (double)job->cap));
        drawn[t] = draw_row(logit, head->out, job, t);
    }
    free(logit);
}

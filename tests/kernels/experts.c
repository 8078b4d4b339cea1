/* A mixture of experts: which are chosen, with what weights, and rows that do not know each other. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_EXPERTS = 300 };

static const struct mixture {
    int rows, n, n_used, width, inner; // T, E, how many a row uses, D, F
    bool renormalise;
} mixtures[] = {
    { 1, 1, 1, 8, 6, true },       { 1, 4, 2, 16, 24, true },    { 7, 4, 2, 16, 24, false },
    { 40, 8, 2, 64, 48, true },    { 40, 8, 8, 64, 48, false },  { 33, 20, 3, 30, 17, true },
    { 130, 5, 1, 48, 32, true },   { 130, 6, 1, 48, 32, false }, { 3, 20, 1, 64, 64, false },
    { 300, 2, 1, 200, 136, true }, { 70, 3, 3, 136, 72, false }, { 4, 300, 3, 8, 4, true },
    { 520, 3, 2, 9, 7, true },     { 2, 2, 2, 2056, 8, true },   { 2100, 3, 1, 8, 8, true },
    { 128, 1, 1, 40, 24, true },   { 129, 1, 1, 40, 24, true },
};
enum { N_MIXTURES = sizeof(mixtures) / sizeof(*mixtures) };

struct model {
    struct weight *router, *gate_up[MAX_EXPERTS], *down[MAX_EXPERTS];
};

static struct weight *weight_of(struct backend *be, float *host, int out, int in, float scale)
{
    struct err err = { 0 };
    struct mat part = mat_of(host, out, in);

    for (int i = 0; i < out * in; i++)
        host[i] *= scale;
    struct weight *w = be->weight_new(be, &part, 1, &err);
    cr_assert(w, "%s", err.msg);
    return w;
}

static struct weight *named(struct backend *be, const char *name, int number, int out, int in)
{
    char text[32];
    snprintf(text, sizeof(text), "%s %d", name, number);
    float *host = host_numbers(text, (size_t)(out * in));
    const float scale = in > 256 ? 0x1p-5f : in > 64 ? 0x1p-3f : 0x1p-2f; // exact, and hidden numbers of about 1
    struct weight *w = weight_of(be, host, out, in, scale);

    free(host);
    return w;
}

/* tie: expert 2i + 1 has the router's row of expert 2i, so that their logits are equal. */
static struct model model_on(struct backend *be, struct mixture m, bool tie)
{
    struct model model = { 0 };
    float *router = host_numbers("router", (size_t)(m.n * m.width));

    for (int i = 0; i < m.n * m.width; i++) // whole numbers: exact sums, so ties are ties in every dtype and order
        router[i] = tie ? rintf(router[i / m.width % 2 ? i - m.width : i]) : router[i];
    model.router = weight_of(be, router, m.n, m.width, 1);
    for (int e = 0; e < m.n; e++) {
        model.gate_up[e] = named(be, "gate_up", e, 2 * m.inner, m.width);
        model.down[e] = named(be, "down", e, m.width, m.inner);
    }
    free(router);
    return model;
}

static void model_free(struct backend *be, struct mixture m, struct model *model)
{
    be->weight_free(be, model->router);
    for (int e = 0; e < m.n; e++) {
        be->weight_free(be, model->gate_up[e]);
        be->weight_free(be, model->down[e]);
    }
}

static struct experts experts_of(struct mixture m, struct model *model, const struct weight **gate_up,
                                 const struct weight **down)
{
    for (int e = 0; e < m.n; e++) {
        gate_up[e] = model->gate_up[e];
        down[e] = model->down[e];
    }
    return (struct experts){ .router = model->router,
                             .gate_up = gate_up,
                             .down = down,
                             .n = m.n,
                             .n_used = m.n_used,
                             .width = m.inner,
                             .renormalise = m.renormalise };
}

/* x after the mixture of the rows from `first` on. */
static float *moe_on(struct backend *be, struct mixture m, bool tie, int first, int rows)
{
    const struct weight *gate_up[MAX_EXPERTS], *down[MAX_EXPERTS];
    size_t n = (size_t)(m.rows * m.width);
    struct model model = model_on(be, m, tie);
    float *host = host_numbers("normed", n), *x_host = host_numbers("x", n);

    for (size_t i = 0; i < n && tie; i++)
        host[i] = rintf(host[i]);
    void *normed = stored_from(be, host + first * m.width, (size_t)(rows * m.width));
    float *x = numbers_from(be, x_host + first * m.width, (size_t)(rows * m.width));
    struct experts experts = experts_of(m, &model, gate_up, down);
    float *biases[] = { numbers(be, "router bias", (size_t)m.n), numbers(be, "up bias", (size_t)(m.n * 2 * m.inner)),
                        numbers(be, "down bias", (size_t)(m.n * m.width)) };
    if (m.n % 2 == 0 && !tie) { // gpt-oss'
        experts.router_bias = biases[0], experts.gate_up_bias = biases[1], experts.down_bias = biases[2];
        experts.gate = GATE_CLAMPED;
    }
    be->moe(be, mat_of(x, rows, m.width), stored_mat(be, normed, rows, m.width), &experts);
    must_sync(be);
    model_free(be, m, &model);
    for (int i = 0; i < 3; i++)
        be->free(be, biases[i]);
    be->free(be, normed);
    free(host);
    free(x_host);
    return x;
}

static void check_moe(const struct pair *p)
{
    const struct tolerances within = { { 1e-4, 1e-5 }, { 0.2, 2e-2 } };

    for (int i = 0; i < N_MIXTURES; i++)
        for (int tie = 0; tie < 2; tie++) {
            struct mixture m = mixtures[i];
            char what[96];
            snprintf(what, sizeof(what), "moe %d of %d experts, %d rows, %s", m.n_used, m.n, m.rows,
                     tie ? "equal logits" : "");
            same_floats(p,
                        (struct results){ moe_on(p->want, m, tie, 0, m.rows), moe_on(p->got, m, tie, 0, m.rows),
                                          (size_t)(m.rows * m.width) },
                        within, what);
        }
}

Test(kernels, moe)
{
    each_pair(check_moe);
}

/* One column, one hidden number. Logits 0 0 ln 2 ln 2: the two largest have 1/3 each of all, or 1/2 of the chosen. */
static void check_by_hand(const struct pair *p)
{
    struct backend *be = p->got;
    const double silu_1 = 1 / (1 + exp(-1.0));
    float router[] = { 0, 0, logf(2), logf(2) }, one[] = { 1, 1 }, down_of[] = { 1, 10, 100, 1000 };

    for (int n_used = 1; n_used <= 2; n_used++)
        for (int renormalise = 0; renormalise < 2; renormalise++) {
            struct mixture m = { 1, 4, n_used, 1, 1, renormalise };
            const struct weight *gate_up[MAX_EXPERTS], *down[MAX_EXPERTS];
            struct model model = { .router = weight_of(be, router, 4, 1, 1) };
            for (int e = 0; e < 4; e++) {
                model.gate_up[e] = weight_of(be, one, 2, 1, 1);
                model.down[e] = weight_of(be, &down_of[e], 1, 1, 1);
            }
            const struct experts experts = experts_of(m, &model, gate_up, down);
            float *x = numbers_from(be, &(float){ 0.5f }, 1);
            void *normed = stored_from(be, one, 1);
            be->moe(be, mat_of(x, 1, 1), stored_mat(be, normed, 1, 1), &experts);
            float *got = read_numbers(be, x, 1, "moe by hand");
            double weight = renormalise ? 1. / n_used : 1. / 3,
                   want = 0.5 + weight * silu_1 * (n_used == 1 ? 100 : 1100);
            cr_assert_float_eq((double)*got, want, be->dtype == DTYPE_F32 ? 1e-3 : 3, "%s: %g, not %g", p->name,
                               (double)*got, want);
            model_free(be, m, &model);
            be->free(be, x);
            be->free(be, normed);
            free(got);
        }
}

Test(kernels, moe_by_hand)
{
    each_pair(check_by_hand);
}

/* Gate and up are rounded to the backend's dtype before they are multiplied: 16 * 16 + 1 is 257, in bf16 256; times 3
 * that is 768, where 771 would become 772. */
static void check_rounding(const struct pair *p)
{
    struct backend *be = p->got;
    const struct mixture m = { 1, 1, 1, 2, 1, true };
    const struct weight *gate_up[MAX_EXPERTS], *down[MAX_EXPERTS];
    float normed_host[] = { 16, 1 }, gate_up_of[] = { 16, 1, 0, 3 }, down_of[] = { 1, 0 };
    struct model model = { .router = weight_of(be, (float[]){ 0, 0 }, 1, 2, 1) };

    model.gate_up[0] = weight_of(be, gate_up_of, 2, 2, 1);
    model.down[0] = weight_of(be, down_of, 2, 1, 1);
    const struct experts experts = experts_of(m, &model, gate_up, down);
    float *x = numbers_from(be, (float[]){ 0, 0 }, 2);
    void *normed = stored_from(be, normed_host, 2);
    be->moe(be, mat_of(x, 1, 2), stored_mat(be, normed, 1, 2), &experts);
    float *got = read_numbers(be, x, 2, "moe, rounded");
    cr_assert_eq(*got, be->dtype == DTYPE_F32 ? 771 : 768, "%s: %g", p->name, (double)*got);
    model_free(be, m, &model);
    be->free(be, x);
    be->free(be, normed);
    free(got);
}

Test(kernels, moe_rounds_gate_and_up)
{
    each_pair(check_rounding);
}

static void check_rows_alone(const struct pair *p)
{
    struct backend *be = p->got;

    for (int i = 0; i < N_MIXTURES; i++) {
        struct mixture m = mixtures[i];
        float *all = moe_on(be, m, false, 0, m.rows);
        for (int n = 1; n < m.rows; n += 1 + m.rows / 3) {
            int first = m.rows - n;
            float *some = moe_on(be, m, false, first, n);
            same_bits(be, some, all + first * m.width, (size_t)(n * m.width) * sizeof(float), "moe of some rows");
            be->free(be, some);
        }
        be->free(be, all);
    }
}

Test(kernels, moe_rows_do_not_know_each_other)
{
    each_pair(check_rows_alone);
}

Test(kernels, moe_rows_do_not_know_each_other_on_many_threads)
{
    on_many_threads(check_rows_alone);
}

/* unvisited.c - rows and sizes from tokens and methods, times from least squares over the measured rows. */
#include "profiler/run/unvisited.h"

#include "variants/sizes.h"

#include <math.h>
#include <string.h>

/* ---- rows --------------------------------------------------------------------- */

static int set_prefix_digests(struct table *t, int row, const struct work *w, struct err *err)
{
    struct buf chain = { 0 };
    int code = digest_chain(w->ids.at, w->ids.n, &chain, err);
    char *taken = code ? NULL : buf_take(&chain);

    buf_release(&chain);
    if (code || table_own(t, taken, err))
        return err->code;
    t->context_prefix_digests[row] = taken;
    return 0;
}

int unvisited_row(struct table *t, int row, const struct work *w, const struct kv_shape *model, struct err *err)
{
    const struct kv_shape shape = kv_shape_of(model, w->ids.n);

    t->context_id[row] = w->context->id;
    t->context_dataset[row] = w->context->dataset;
    t->context_token_digest[row] = w->token_digest;
    t->n_tokens[row] = w->ids.n;
    t->kv_bytes[row] = kv_bytes(&shape, w->ids.n);
    return set_prefix_digests(t, row, w, err);
}

int unvisited_rows(struct table *out, const struct grid *g, const struct kv_shape *model, struct err *err)
{
    if (table_alloc(out, g->n_work, g->n_configs, 0, err))
        return err->code;
    for (int v = 0; v < g->n_configs; v++)
        out->config_name[v] = g->config[v].name;
    for (int i = 0; i < g->n_work; i++)
        if (unvisited_row(out, i, &g->work[i], model, err)) {
            table_release(out);
            return err->code;
        }
    return 0;
}

/* ---- sizes -------------------------------------------------------------------- */

size_t unvisited_sizes(struct table *t, const struct kv_shape *model)
{
    size_t filled = 0;

    for (int v = 0; v < t->n_configs; v++) {
        struct config config;
        struct err ignored;
        if (config_parse(&config, t->config_name[v], &ignored) || config_check(&config, model, &ignored))
            continue;
        for (int c = 0; c < t->n_contexts; c++) {
            size_t cell = table_cell(t, c, v);
            int n = t->n_tokens[c] > 0 && t->n_tokens[c] < INT32_MAX ? (int)t->n_tokens[c] : 0;
            const struct kv_shape shape = kv_shape_of(model, n);
            int64_t bytes = n > 0 && t->cell_bytes[cell] < 0 ? config_bytes_known(&config, &shape, n) : -1;
            if (bytes < 0 || t->kv_bytes[c] <= 0)
                continue;
            t->cell_bytes[cell] = bytes;
            t->size_frac[cell] = (double)bytes / (double)t->kv_bytes[c];
            t->keep_frac[cell] = config_keep_frac(&config, &shape, n);
            filled++;
        }
    }
    return filled;
}

/* ---- times -------------------------------------------------------------------- */

static bool cell_is_measured(const struct table *t, int context, int config)
{
    return !isnan(t->compress_s[table_cell(t, context, config)]);
}

/* A fit of y = a f(x) + b g(x): the sums of its normal equations. */
enum curve { CURVE_ORIGIN, CURVE_LINE }; // f, g: x, x^2; or 1, x
struct fit {
    enum curve curve;
    double scale; // of x, so that the sums have similar sizes
    double ff, fg, gg, fy, gy, a, b;
};

static void terms(const struct fit *f, double x, double out[2])
{
    x /= f->scale;
    out[0] = f->curve == CURVE_ORIGIN ? x : 1;
    out[1] = f->curve == CURVE_ORIGIN ? x * x : x;
}

static void fit_add(struct fit *f, double x, double y)
{
    double term[2];

    if (isnan(y))
        return;
    terms(f, x, term);
    f->ff += term[0] * term[0];
    f->fg += term[0] * term[1];
    f->gg += term[1] * term[1];
    f->fy += term[0] * y;
    f->gy += term[1] * y;
}

/* Solves for both coefficients if they are determined and not negative, else for one. false: no points. */
static bool fit_solve(struct fit *f)
{
    double determinant = f->ff * f->gg - f->fg * f->fg;

    if (!(f->ff > 0))
        return false;
    f->a = (f->fy * f->gg - f->gy * f->fg) / determinant;
    f->b = (f->gy * f->ff - f->fy * f->fg) / determinant;
    if (!(determinant > 1e-9 * f->ff * f->gg) || f->b < 0) {
        f->a = f->fy / f->ff;
        f->b = 0;
    } else if (f->a < 0) {
        f->a = 0;
        f->b = f->gy / f->gg;
    }
    return true;
}

static double fit_at(const struct fit *f, double x)
{
    double term[2];

    terms(f, x, term);
    return f->a * term[0] + f->b * term[1];
}

/* A column of contexts or cells, in two tables. */
struct fit_column {
    double *to;
    const double *from;
    enum curve curve;
    double scale;
};

static void fit_contexts(struct table *t, const struct table *measured, const struct fit_column *column)
{
    struct fit f = { .curve = column->curve, .scale = column->scale };

    for (int c = 0; c < measured->n_contexts; c++)
        if (measured->n_tokens[c] > 0 && table_is_measured(measured, c))
            fit_add(&f, (double)measured->n_tokens[c], column->from[c]);
    if (!fit_solve(&f))
        return;
    for (int c = 0; c < t->n_contexts; c++)
        if (t->n_tokens[c] > 0 && !table_is_measured(t, c))
            column->to[c] = fit_at(&f, (double)t->n_tokens[c]);
}

/* A config's column of cells. from: the same config in `measured`. */
static void fit_cells(struct table *t, int v, const struct table *measured, int from, const struct fit_column *column)
{
    struct fit f = { .curve = column->curve, .scale = column->scale };

    for (int c = 0; c < measured->n_contexts; c++)
        if (measured->n_tokens[c] > 0 && cell_is_measured(measured, c, from))
            fit_add(&f, (double)measured->n_tokens[c], column->from[table_cell(measured, c, from)]);
    if (!fit_solve(&f))
        return;
    for (int c = 0; c < t->n_contexts; c++)
        if (t->n_tokens[c] > 0 && t->cell_bytes[table_cell(t, c, v)] >= 0 && !cell_is_measured(t, c, v))
            column->to[table_cell(t, c, v)] = fit_at(&f, (double)t->n_tokens[c]);
}

void unvisited_times(struct table *t, const struct table *measured)
{
    enum { CONTEXTS = 3, CELLS = 1 + TABLE_BATCHES };
    double scale = 1;

    for (int c = 0; c < measured->n_contexts; c++)
        scale = fmax(scale, (double)measured->n_tokens[c]);
    const struct fit_column of_contexts[CONTEXTS] = { { t->prefill_s, measured->prefill_s, CURVE_ORIGIN, scale },
                                                      { t->prefill_flop, measured->prefill_flop, CURVE_ORIGIN, scale },
                                                      { t->question_s, measured->question_s, CURVE_LINE, scale } };
    const struct fit_column of_cells[CELLS] = { { t->decompress_s, measured->decompress_s, CURVE_ORIGIN, scale },
                                                { t->decode_s[0], measured->decode_s[0], CURVE_LINE, scale },
                                                { t->decode_s[1], measured->decode_s[1], CURVE_LINE, scale },
                                                { t->decode_s[2], measured->decode_s[2], CURVE_LINE, scale } };
    for (int k = 0; k < CONTEXTS; k++)
        fit_contexts(t, measured, &of_contexts[k]);
    for (int v = 0; v < t->n_configs; v++) {
        int from = table_find_config(measured, t->config_name[v]);
        for (int k = 0; k < CELLS && from >= 0; k++)
            fit_cells(t, v, measured, from, &of_cells[k]);
    }
}

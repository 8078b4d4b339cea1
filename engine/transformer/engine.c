/* engine.c - opening a model and a backend; then, with a plan, loading weights and the table of rotary angles. */
#include "engine/transformer/engine.h"

#include "base/parallel.h"
#include "engine/transformer/engine_internal.h"
#include "kernels/timed.h"

#include <math.h>
#include <stdlib.h>

const struct model *engine_model(const struct engine *e)
{
    return e->model;
}

const struct tokenizer *engine_tokenizer(const struct engine *e)
{
    return e->tokenizer;
}

struct backend *engine_backend(const struct engine *e)
{
    return e->backend;
}

struct kv_shape engine_kv_shape(const struct engine *e, int n_tokens)
{
    const struct kv_shape model = model_kv_shape(&e->config, e->backend->dtype);
    return kv_shape_of(&model, n_tokens);
}

float engine_score_scale(const struct engine *e)
{
    const double given = e->config.multiplier[MULTIPLY_SCORES];
    return given > 0 ? (float)given : 1 / sqrtf((float)e->config.head_dim);
}

/* ---- rotary angles ------------------------------------------------------ */

/* The pair of which the original context is so many turns. */
static double pair_of_turns(const struct model_config *c, double turns)
{
    return c->rotary * log(c->rope_original / (turns * 2 * acos(-1))) / (2 * log(c->rope_theta));
}

/* yarn: pairs of many turns as they are, pairs of few turns stretched, a blend between. */
static float yarn_step(const struct model_config *c, int i, float power)
{
    double low = pair_of_turns(c, c->rope_high), high = pair_of_turns(c, c->rope_low);

    low = fmax(c->rope_exact ? low : floor(low), 0);
    high = fmin(c->rope_exact ? high : ceil(high), c->rotary - 1);
    high += low == high ? 0.001 : 0;
    const float part = ((float)i - (float)low) / (float)(high - low), blend = 1 - fminf(fmaxf(part, 0), 1);
    return 1 / ((float)c->rope_factor * power) * (1 - blend) + 1 / power * blend;
}

static float llama3_step(const struct model_config *c, float step)
{
    const float factor = (float)c->rope_factor, low = (float)c->rope_low, high = (float)c->rope_high;
    const float turn = (float)(2 * acos(-1)) / step, original = (float)c->rope_original; // positions

    if (turn < (float)(c->rope_original / c->rope_high))
        return step;
    if (turn > (float)(c->rope_original / c->rope_low))
        return step / factor;
    const float blend = (original / turn - low) / (high - low);
    return (1 - blend) * step / factor + blend * step;
}

/* Radians per position of pair i, as in training: plain, stretched (linear), stretched only for a turn longer than the
 * context of the original model (llama3, yarn), or each pair by a divisor of its own (longrope; the second table is
 * for texts longer than the original context). Every operation is rounded to f32, in the order of transformers: after
 * 128k positions the last bit of the result is worth a thousandth of a turn. */
static float rope_step(const struct model_config *c, int i, bool second)
{
    const double theta = second && c->rope_theta_window > 0 ? c->rope_theta_window : c->rope_theta;
    const float exponent = (float)(2 * i) / (float)c->rotary, power = (float)pow(theta, (double)exponent);

    if (theta != c->rope_theta)
        return 1 / power;
    switch (c->rope_scaling) {
    case ROPE_PLAIN: break;
    case ROPE_LINEAR: return 1 / power / (float)c->rope_factor;
    case ROPE_LLAMA3: return llama3_step(c, 1 / power);
    case ROPE_YARN: return yarn_step(c, i, power);
    case ROPE_LONGROPE: return 1 / (c->rope_divisors[i + second * c->rotary / 2] * power);
    }
    return 1 / power;
}

/* A table of a function of the angles: (tables, positions, pairs). */
struct angles {
    const struct engine *e;
    double (*function)(double);
    float *table;
};

static void set_pair(void *arg, int i)
{
    const struct angles *a = arg;
    const struct model_config *c = &a->e->config;
    const size_t half = (size_t)c->rotary / 2, n = (size_t)a->e->plan.max_positions, pair = (size_t)i % half;
    const bool second = (size_t)i >= half;
    const float step = rope_step(c, (int)pair, second), attention = (float)c->rope_attention;

    for (size_t p = 0; p < n; p++) // the angle as in the models' own code
        a->table[(second * n + p) * half + pair] = (float)a->function((double)((float)p * step)) * attention;
}

size_t angles_bytes(const struct engine *e, int max_positions)
{
    const struct model_config *c = &e->config;
    return (size_t)(rope_tables(c) * max_positions) * (size_t)(c->rotary / 2) * sizeof(float);
}

/* One of the two tables, on the device. */
static float *angles_of(const struct engine *e, double (*function)(double), struct err *err)
{
    struct backend *be = e->backend;
    size_t bytes = angles_bytes(e, e->plan.max_positions);
    float *table = malloc(bytes), *at = table ? be->alloc(be, bytes, err) : NULL;

    if (!table)
        err_nomem(err);
    if (at) {
        parallel_do(parallel_threads(), rope_tables(&e->config) * e->config.rotary / 2, set_pair,
                    &(struct angles){ e, function, table });
        be->write(be, at, table, bytes);
    }
    free(table);
    return at;
}

/* ---- open, load, close -------------------------------------------------- */

static int open_all(struct engine *e, const char *model, bool no_weights, struct err *err)
{
    e->model = no_weights ? model_open_config(model, err) : model_open(model, err);
    if (!e->model)
        return err->code;
    e->config = *model_config(e->model);
    /* Where what a layer adds is multiplied, the residual is kept divided by it: norms do not see a factor, their
     * epsilon does. */
    const double residual = e->config.multiplier[MULTIPLY_RESIDUAL];
    if (residual > 0)
        e->config.norm_eps = (float)((double)e->config.norm_eps / (residual * residual));
    e->tokenizer = tokenizer_open(e->model, err);
    return e->tokenizer ? 0 : err_wrap(err, "'%s'", model);
}

/* Without a backend. */
static struct engine *engine_new(const char *model, bool no_weights, struct err *err)
{
    struct engine *e = calloc(1, sizeof(*e));

    if (!e) {
        err_nomem(err);
        return NULL;
    }
    if (open_all(e, model, no_weights, err)) {
        engine_close(e);
        return NULL;
    }
    return e;
}

struct engine *engine_open_on(struct backend *backend, const char *model, struct err *err)
{
    struct engine *e = engine_new(model, false, err);

    if (e)
        e->backend = backend;
    return e;
}

static struct backend *open_backend(const struct engine_options *o, const struct model *model, struct err *err)
{
    const struct backend_options options = { .name = o->backend,
                                             .dtype = o->dtype,
                                             .is_f32 = model_is_f32(model),
                                             .n_threads = o->n_threads,
                                             .device = o->device };
    struct backend *be = backend_open(&options, err), *timed = be && o->timed ? timed_open(be, err) : be;

    if (be && !timed)
        be->close(be);
    return timed;
}

struct engine *engine_open(const struct engine_options *options, struct err *err)
{
    struct engine *e = engine_new(options->model, options->no_weights, err);

    if (e)
        e->backend = open_backend(options, e->model, err);
    if (e && !e->backend) {
        engine_close(e);
        return NULL;
    }
    if (e && options->n_threads > 0)
        model_set_threads(e->model, options->n_threads);
    return e;
}

int engine_load(struct engine *e, const struct engine_plan *plan, struct err *err)
{
    if (e->backend->sync(e->backend, err)) // the backend cannot compute the planned shapes
        return err->code;
    e->plan = *plan;
    e->cos = angles_of(e, cos, err);
    e->sin = e->cos ? angles_of(e, sin, err) : NULL;
    if (!e->sin)
        return err->code;
    return weights_load(e, err);
}

void engine_close(struct engine *e)
{
    if (!e)
        return;
    if (e->backend) {
        weights_free(e);
        e->backend->free(e->backend, e->cos);
        e->backend->free(e->backend, e->sin);
        e->backend->close(e->backend);
    }
    tokenizer_free(e->tokenizer);
    model_close(e->model);
    free(e);
}

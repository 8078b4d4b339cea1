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

struct kv_shape engine_kv_shape(const struct engine *e)
{
    const struct model_config *c = &e->config;
    return (struct kv_shape){ c->n_layers, c->n_heads, c->n_kv_heads, c->head_dim, e->backend->dtype };
}

/* ---- rotary angles ------------------------------------------------------ */

/* Radians per position of pair i, as in training: plain, stretched (linear), or stretched only for a turn longer than
 * the context of the original model (llama3). Every operation is rounded to f32, in the order of transformers: after
 * 128k positions the last bit of the result is worth a thousandth of a turn. */
static float rope_step(const struct model_config *c, int i)
{
    const float exponent = (float)(2 * i) / (float)c->rotary, step = 1 / (float)pow(c->rope_theta, (double)exponent);
    const float factor = (float)c->rope_factor, low = (float)c->rope_low, high = (float)c->rope_high;

    if (c->rope_scaling == ROPE_PLAIN)
        return step;
    if (c->rope_scaling == ROPE_LINEAR)
        return step / factor;
    const float turn = (float)(2 * acos(-1)) / step, original = (float)c->rope_original; // positions
    if (turn < (float)(c->rope_original / c->rope_high))
        return step;
    if (turn > (float)(c->rope_original / c->rope_low))
        return step / factor;
    const float blend = (original / turn - low) / (high - low);
    return (1 - blend) * step / factor + blend * step;
}

/* A table of a function of the angles. (positions, pairs) */
struct angles {
    const struct engine *e;
    double (*function)(double);
    float *table;
};

static void set_pair(void *arg, int pair)
{
    const struct angles *a = arg;
    size_t half = (size_t)a->e->config.rotary / 2;
    float step = rope_step(&a->e->config, pair);

    for (size_t p = 0; p < (size_t)a->e->plan.max_positions; p++)
        a->table[p * half + (size_t)pair] =
            (float)a->function((double)((float)p * step)); // the angle as in the models' own code
}

/* One of the two tables, on the device. */
static float *angles_of(const struct engine *e, double (*function)(double), struct err *err)
{
    struct backend *be = e->backend;
    size_t half = (size_t)e->config.rotary / 2, bytes = (size_t)e->plan.max_positions * half * sizeof(float);
    float *table = malloc(bytes), *at = table ? be->alloc(be, bytes, err) : NULL;

    if (!table)
        err_nomem(err);
    if (at) {
        parallel_do(parallel_threads(), (int)half, set_pair, &(struct angles){ e, function, table });
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

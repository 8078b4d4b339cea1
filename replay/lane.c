/* lane.c - asks the policy, and notes what each request saw.
 *
 * With `engine_bytes` the engines have an LRU cache of their own in the memory of the GPUs, as vLLM and SGLang do: what
 * was computed or loaded for a request is there for the next one, if it has all rows of keys and values, and what is
 * found there is not asked of the policy, which does not see that use. */
#include "replay/lane.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool in_engine(const struct lane *l, int32_t row)
{
    return l->engine_bytes > 0 && object_cache_has(&l->engine, row);
}

/* The config in which a row is in the memory of a GPU once a request has used it; -1: not all of its rows are. */
static int config_in_memory(const struct lane *l, int32_t row)
{
    const struct table *t = &l->in.table;
    const struct held held = l->policy.kind->find(&l->policy, row);
    size_t cell = table_cell(t, row, held.config);
    int64_t there = 0;

    for (int k = 0; k < l->in.tiers.n; k++)
        there += held.at[k];
    if (there < t->cell_bytes[cell] || there == 0)
        return 0;
    return t->keep_frac[cell] < 1 ? -1 : held.config;
}

/* A request has used its rows: the first ones are to leave last. */
static void keep_in_engine(struct lane *l, const int32_t *row, int n)
{
    struct object_cache *c = &l->engine;
    int64_t freed;

    for (int k = n - 1; k >= 0; k--) {
        int config = object_cache_has(c, row[k]) ? -1 : config_in_memory(l, row[k]);
        if (object_cache_has(c, row[k]))
            object_cache_hit(c, row[k]);
        else if (config >= 0 && c->bytes[row[k]] <= c->capacity) {
            while (c->held + c->bytes[row[k]] > c->capacity)
                object_cache_evict(c, row[k], c->held + c->bytes[row[k]] - c->capacity, &freed);
            object_cache_insert(c, row[k], c->bytes[row[k]]);
            l->engine_config[row[k]] = (int16_t)config;
        }
    }
}

/* What a request finds now. *config: of it, 0 for nothing. */
static struct finding look(const struct lane *l, int i, int *config)
{
    struct finding f = { .shares = 0 };
    const int32_t *row;
    int n = world_rows(l->world, i, &row);

    *config = 0;
    for (int k = 0; k < n; k++) {
        if (in_engine(l, row[k])) {
            world_add_memory(l->world, i, row[k], l->engine_config[row[k]], &f);
            continue;
        }
        const struct held held = l->policy.kind->find(&l->policy, row[k]);
        *config = held.config ? held.config : *config;
        if (!world_add(l->world, i, row[k], &held, &f))
            break;
    }
    world_finish(l->world, i, &f);
    return f;
}

static void note(struct lane *l, int i, const struct finding *f, int config)
{
    int64_t n_tiers = l->in.tiers.n;

    l->seen.quality[i] = (float)f->quality;
    l->seen.config[i] = (int16_t)config;
    l->seen.in_memory[i] = f->in_memory;
    for (int t = 0; t < n_tiers; t++)
        l->seen.share[i * n_tiers + t] = f->share[t];
}

static double arrive(void *arg, int i, struct sim_bytes *read)
{
    struct lane *l = arg;
    int config;
    const struct finding f = look(l, i, &config);

    note(l, i, &f, config);
    memcpy(read->at, f.read, sizeof(read->at));
    read->kept = f.kept;
    return f.gpu_s;
}

static double turn(void *arg, int i, double gpu_s)
{
    struct lane *l = arg;
    int config;
    const struct finding f = look(l, i, &config);

    if (f.gpu_s >= gpu_s)
        return gpu_s;
    note(l, i, &f, config);
    return f.gpu_s;
}

/* Adds up what the policy says it holds. */
static void check_capacity(struct lane *l)
{
    double held[TIER_MAX] = { 0 };

    for (int row = 0; row < l->in.table.n_contexts; row++) {
        const struct held part = l->policy.kind->find(&l->policy, row);
        for (int t = 0; t < l->in.tiers.n; t++)
            held[l->in.pool[t]] += (double)part.at[t];
    }
    for (int t = 0; t < l->in.tiers.n; t++)
        if (l->in.pool[t] == t)
            l->over = fmax(l->over, held[t] - (double)l->in.capacity[t]);
}

static void note_written(struct lane *l, const struct sim_bytes *written)
{
    for (int t = 0; t < l->in.tiers.n; t++)
        l->written += written->at[t];
    l->dropped += written->dropped;
    l->operations += written->n;
}

static int finish(void *arg, int i, struct sim_bytes *written, struct err *err)
{
    struct lane *l = arg;
    const int32_t *row;
    int n = world_rows(l->world, i, &row), kept = 0;

    while (kept < n && in_engine(l, row[kept]))
        kept++;
    if (l->engine_bytes > 0)
        keep_in_engine(l, row, n);
    if ((n == 0 || kept < n) && l->policy.kind->finish && l->policy.kind->finish(&l->policy, i, written, err))
        return err->code;
    if (i >= l->world->warm)
        note_written(l, written);
    if (l->validate)
        check_capacity(l);
    return 0;
}

static double idle(void *arg)
{
    struct lane *l = arg;

    return l->policy.idle(&l->policy);
}

static int worked(void *arg, struct sim_bytes *written, struct err *err)
{
    struct lane *l = arg;

    if (l->policy.worked(&l->policy, written, err))
        return err->code;
    note_written(l, written);
    if (l->validate)
        check_capacity(l);
    return 0;
}

static double little_error(const struct lane *l)
{
    double times = 0;

    for (int i = 0; i < l->world->n; i++)
        times += l->seen.ttft_s[i];
    return fabs(l->sim.in_system_s - times) / times;
}

/* Requests per second; 0: one after the other. */
static double rate_of(const struct lane *l)
{
    int n = l->world->n;

    if (l->alone || n < 2 || l->at[n - 1] == l->at[0])
        return 0;
    return (n - 1) / ((double)(l->at[n - 1] - l->at[0]) / 1e9);
}

static int open_engine(struct lane *l, struct err *err)
{
    const struct table *t = &l->in.table;

    l->engine_config = calloc((size_t)t->n_contexts + 1, sizeof(*l->engine_config));
    l->engine = (struct object_cache){
        .kind = object_cache_find("lru"), .n = t->n_contexts, .bytes = t->kv_bytes, .capacity = l->engine_bytes
    };
    return l->engine_config ? object_cache_open(&l->engine, err) : err_nomem(err);
}

int lane_run(struct lane *l, const char *policy, struct err *err)
{
    size_t n = (size_t)l->world->n + 1, n_rows = (size_t)l->world->in->table.n_contexts + 1;

    l->in = *l->world->in;
    l->in.alpha = l->alpha;
    if (l->capacity)
        memcpy(l->in.capacity, l->capacity, (size_t)l->in.tiers.n * sizeof(*l->capacity));
    l->in.load = (struct manifest_load){ .rate = rate_of(l), .gpus = l->n_gpus };
    l->in.frequency = calloc(n_rows, sizeof(*l->in.frequency));

    l->seen.ttft_s = calloc(n, sizeof(*l->seen.ttft_s));
    l->seen.quality = calloc(n, sizeof(*l->seen.quality));
    l->seen.share = calloc(n * (size_t)l->in.tiers.n, sizeof(*l->seen.share));
    l->seen.config = calloc(n, sizeof(*l->seen.config));
    l->seen.in_memory = calloc(n, sizeof(*l->seen.in_memory));
    l->seen.output = l->output;
    l->seen.e2e_s = l->gpu ? calloc(n, sizeof(*l->seen.e2e_s)) : NULL;
    if ((l->gpu && !l->seen.e2e_s) || !l->in.frequency || !l->seen.ttft_s || !l->seen.quality || !l->seen.share ||
        !l->seen.in_memory || !l->seen.config)
        return err_nomem(err);
    if (l->engine_bytes > 0 && open_engine(l, err))
        return err->code;
    if (policy_open(&l->policy, policy, l->world, &l->in, err))
        return err->code;
    l->policy.at = l->at;
    l->promised_ttft_s = l->policy.promised_ttft_s;
    l->promised_quality = l->policy.promised_quality;
    l->sim = (struct simulation){ .at = l->at,
                                  .n = l->world->n,
                                  .tiers = &l->in.tiers,
                                  .n_gpus = l->n_gpus,
                                  .alone = l->alone,
                                  .policy = { arrive, turn, finish, l->policy.idle ? idle : NULL, worked, l },
                                  .gpu = l->gpu,
                                  .output = l->output,
                                  .ttft_s = l->seen.ttft_s,
                                  .e2e_s = l->seen.e2e_s };
    l->over = -(double)INFINITY;
    int code = simulate(&l->sim, err);
    l->little = l->validate ? little_error(l) : 0;
    l->profiled = l->policy.profiled;
    l->profiling_s = l->policy.profiling_s;
    policy_close(&l->policy);
    return code ? code : seen_row_of(&l->outcome, l->world, &l->seen, l->quality_floor, err);
}

void lane_close(struct lane *l)
{
    free(l->in.frequency);
    l->in.frequency = NULL;
    free(l->seen.ttft_s);
    free(l->seen.e2e_s);
    free(l->seen.quality);
    free(l->seen.share);
    free(l->seen.in_memory);
    free(l->engine_config);
    l->engine_config = NULL;
    object_cache_close(&l->engine);
    free(l->seen.config);
    l->seen = (struct seen){ 0 };
}

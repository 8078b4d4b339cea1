/* lane.c - asks the policy, and notes what each request saw. */
#include "replay/lane.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a request finds now. *config: of it, 0 for nothing. */
static struct finding look(const struct lane *l, int i, int *config)
{
    struct finding f = { .shares = 0 };
    const int32_t *row;
    int n = world_rows(l->world, i, &row);

    *config = 0;
    for (int k = 0; k < n; k++) {
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

    if (l->policy.kind->finish && l->policy.kind->finish(&l->policy, i, written, err))
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
    l->seen.output = l->output;
    l->seen.e2e_s = l->gpu ? calloc(n, sizeof(*l->seen.e2e_s)) : NULL;
    if ((l->gpu && !l->seen.e2e_s) || !l->in.frequency || !l->seen.ttft_s || !l->seen.quality || !l->seen.share ||
        !l->seen.config)
        return err_nomem(err);
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
    free(l->seen.config);
    l->seen = (struct seen){ 0 };
}

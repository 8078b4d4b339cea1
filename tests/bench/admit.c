/* admit.c - what an event costs in libevicpress.
 *
 *     admit N SEED [EVENTS]
 *
 * `real` instance: N contexts are planned and written as evp-plan --online does; then EVENTS (by default 1000) contexts
 * are admitted, used more, and removed, with the variants of their hulls, and are admitted with all 60; then EVENTS
 * uses come, from which the plan learns. Then the plan is saved while events go on: the longest of them is what a save
 * stops them for.
 *
 * Microseconds per event.
 */
#include "base/clock.h"
#include "base/rng.h"
#include "formats/manifest.h"
#include "loader/libevicpress/evicpress_plan.h"
#include "loader/libevicpress/live_plan.h"
#include "planner/hull.h"
#include "planner/utility.h"
#include "tests/bench/events.h"
#include "tests/bench/instance.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { V = INSTANCE_CONFIGS, T = INSTANCE_TIERS };

static char uri[T][8] = { "gpu", "/dram", "/ssd", "/remote" };
static struct tier tier[T] = { { .name = "gpu",
                                 .kind = TIER_GPU,
                                 .uri = uri[0],
                                 .read_bytes_per_s = 1e12,
                                 .write_bytes_per_s = 1e12,
                                 .latency_s = .001 },
                               { .name = "dram",
                                 .kind = TIER_DRAM,
                                 .uri = uri[1],
                                 .read_bytes_per_s = 20e9,
                                 .write_bytes_per_s = 20e9,
                                 .latency_s = .003 },
                               { .name = "ssd",
                                 .kind = TIER_FILE,
                                 .uri = uri[2],
                                 .read_bytes_per_s = 3e9,
                                 .write_bytes_per_s = 3e9,
                                 .latency_s = .01 },
                               { .name = "remote",
                                 .kind = TIER_FILE,
                                 .uri = uri[3],
                                 .read_bytes_per_s = 1e9,
                                 .write_bytes_per_s = 1e9,
                                 .latency_s = .05 } };

struct bench {
    struct instance in;
    struct plan_problem problem; // of the contexts that are there at first
    struct plan_candidates o;
    struct hull_work work;
    char config[V][32], digest[DIGEST_HEX];
    double *seconds; // (n_events)
    int n_events;
};

/* A context's variant; the fourth method must be unpacked. */
static struct variant_info variant_of(const struct bench *b, int context, int v)
{
    size_t o = (size_t)context * V + (size_t)v;

    return (struct variant_info){ b->config[v], (int64_t)b->in.size[o] * 64, (double)b->in.quality[o],
                                  v >= 45 ? (double)b->in.full[context] / 40e9 : 0 };
}

static double prefill_of(const struct bench *b, int context)
{
    return (double)b->in.full[context] / (128 << 10) / 8000;
}

static double candidates(const void *arg, int context, int64_t *bytes, double *out)
{
    const struct bench *b = arg;
    const struct plan_goal goal = { .alpha = 1 };
    double f = (double)b->in.frequency[context];

    for (int v = 0; v < V; v++) {
        struct variant_info variant = variant_of(b, context, v);
        bytes[v] = variant.bytes;
        for (int t = 0; t < T; t++) {
            out[v * T + t] =
                utility(&goal, variant.quality,
                        ttft_stored(tier_read_s(&tier[t], variant.bytes), variant.decompress_s, .03), 0, f);
        }
    }
    return utility_recomputed(&goal, ttft_recomputed(prefill_of(b, context), .03), 0, f);
}

/* The variants that can matter, and the chosen one, as evp-plan --online finds them. */
static struct variants hull_variants(struct bench *b, int context, struct plan_placement chosen,
                                     struct variant_info *variant)
{
    struct variants f = { .at = variant, .prefill_s = prefill_of(b, context), .question_s = .03 };
    bool wanted[V] = { false };

    plan_candidates_get(&b->o, &b->problem, context);
    struct candidate base = hull_base(&b->work, &b->o, &b->problem);
    wanted[base.config] = base.tier >= 0;
    wanted[chosen.config] |= chosen.tier >= 0;
    for (int t = 0; t < T - 1; t++) {
        hull_scan(&b->work, &b->o, &b->problem, t, base.utility);
        for (int k = 0; k < b->work.n; k++)
            wanted[b->work.config[k]] = true;
    }
    for (int k = 0; k < b->work.n_configs; k++)
        if (wanted[b->work.order[k]])
            variant[f.n++] = variant_of(b, context, b->work.order[k]);
    return f;
}

static int write_manifest(struct bench *b, const struct plan *plan, const char *path, struct err *err)
{
    struct manifest m = { .alpha = 1, .solver = "optimal", .tiers = { tier, T }, .max_move = INT64_MAX };
    struct variant_info variant[V];
    char id[16], payload[32];
    int code = 0;

    memcpy(m.price, plan->price, sizeof(m.price));
    for (int i = 0; i < plan->n_contexts && !code; i++) {
        struct plan_placement c = plan->placement[i];
        struct variants variants = hull_variants(b, i, c, variant);
        struct placement p = { .id = id,
                               .token_digest = b->digest,
                               .config = "none",
                               .tier = c.tier,
                               .n_tokens = 1,
                               .quality = 1,
                               .frequency = (double)b->in.frequency[i],
                               .operation = OP_NONE,
                               .variants = &variants };
        snprintf(id, sizeof(id), "c%d", i);
        snprintf(payload, sizeof(payload), "p%d", i);
        if (c.tier >= 0) {
            const struct variant_info *chosen = variants_find(&variants, b->config[c.config]);
            p.config = chosen->config;
            p.bytes = chosen->bytes;
            p.quality = chosen->quality;
            p.operation = OP_INSERT;
            p.payload = payload;
        }
        code = manifest_add(&m, &p, err);
    }
    code = code ? code : manifest_write(&m, path, (struct rows_made){ .tool = "bench" }, err);
    m.tiers = (struct tiers){ 0 };
    manifest_release(&m);
    return code;
}

static void report(struct bench *b, const char *name)
{
    struct events took = events_sum_up(b->seconds, b->n_events);

    printf("%-20s mean %.2f us  p50 %.2f  p99 %.2f\n", name, took.mean, took.p50, took.p99);
}

enum event { ADMIT_HULL, ADMIT_ALL, UPDATE, REMOVE };

static int one_event(struct bench *b, struct evp_plan *plan, enum event event, int k, struct evp_error *error)
{
    int context = b->problem.n_contexts + k;
    struct variant_info variant[V];
    struct evp_variant given[V] = { 0 };
    struct variants f = hull_variants(b, context, (struct plan_placement){ 0, PLAN_RECOMPUTE }, variant);
    struct evp_operations todo;
    char id[24];

    snprintf(id, sizeof(id), "new/%d", k);
    f.n = event == ADMIT_ALL ? V : f.n;
    for (int v = 0; v < f.n; v++) {
        struct variant_info from = event == ADMIT_ALL ? variant_of(b, context, v) : variant[v];
        given[v] = (struct evp_variant){ from.config, from.bytes, from.quality, from.decompress_s, { 0 } };
    }
    struct evp_context c = { .id = id,
                             .token_digest = b->digest,
                             .n_tokens = 1,
                             .prefill_s = f.prefill_s,
                             .frequency = (double)b->in.frequency[context],
                             .question_s = .03,
                             .variant = given,
                             .n_variants = (size_t)f.n };
    struct evp_update u = { .id = id, .frequency = 3 * c.frequency };
    double start = clock_now();
    int code = event == UPDATE   ? evp_plan_update(plan, &u, &todo, error)
               : event == REMOVE ? evp_plan_remove(plan, id, &todo, error)
                                 : evp_plan_admit(plan, &c, &todo, error);
    evp_operations_release(&todo);
    b->seconds[k] = clock_now() - start;
    return code;
}

/* Uses by Zipf's law, a tenth of them of contexts that the plan does not have. */
static int time_uses(struct bench *b, struct evp_plan *plan, struct evp_error *error)
{
    struct rng r = rng_new(1);
    struct evp_operations todo;
    size_t operations = 0;
    char id[24];

    for (int k = 0; k < b->n_events; k++) {
        double rank = exp(rng_unit(&r) * log(b->problem.n_contexts));
        struct evp_use use = { .id = id, .token_digest = b->digest, .n_tokens = 1 };
        snprintf(id, sizeof(id), rng_below(&r, 10) ? "c%d" : "used/%d", (int)rank - 1);
        double start = clock_now();
        int code = evp_plan_used(plan, &use, &todo, error);
        b->seconds[k] = clock_now() - start;
        operations += todo.n;
        evp_operations_release(&todo);
        if (code)
            return code;
    }
    report(b, "used");
    printf("%.2f operations per use\n", (double)operations / b->n_events);
    return 0;
}

struct saving {
    struct evp_plan *plan;
    const char *path;
    double seconds;
    atomic_bool done;
};

static void *save(void *arg)
{
    struct saving *s = arg;
    double start = clock_now();

    (void)!evp_plan_save(s->plan, s->path, NULL);
    s->seconds = clock_now() - start;
    s->done = true;
    return NULL;
}

/* Updates contexts until a save in another thread is done, or for so many seconds; says which took longest. */
static int update_for_a_while(struct bench *b, struct saving *s, double seconds, const char *beside,
                              struct evp_error *error)
{
    double longest = 0, began = clock_now(), at = 0;
    long n = 0, slow = 0;
    int code = 0;

    for (; !code && (s->path ? !s->done : clock_now() - began < seconds); n++) {
        char id[24];
        snprintf(id, sizeof(id), "new/%d", (int)(n % b->n_events));
        struct evp_update u = { .id = id, .frequency = (double)(n % 7) };
        struct evp_operations todo;
        double start = clock_now();
        code = evp_plan_update(s->plan, &u, &todo, error);
        evp_operations_release(&todo);
        double took = clock_now() - start;
        slow += took > 5e-3;
        at = took > longest ? start - began : at;
        longest = took > longest ? took : longest;
        nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    }
    printf("%ld events beside %s: the longest took %.2f ms, at %.2f s; %ld took more than 5 ms\n", n, beside,
           1e3 * longest, at, slow);
    return code;
}

static int save_beside_events(struct bench *b, struct evp_plan *plan, const char *path, struct evp_error *error)
{
    struct saving s = { .plan = plan, .path = path }, none = { .plan = plan };
    pthread_t thread;

    if (pthread_create(&thread, NULL, save, &s))
        return EVICPRESS_MEMORY;
    int code = update_for_a_while(b, &s, 0, "a save", error);
    pthread_join(thread, NULL);
    printf("saved in %.2f s meanwhile\n", s.seconds);
    return code ? code : update_for_a_while(b, &none, s.seconds, "nothing", error);
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A save holds the plan's lock for a piece of its copying at a time. The CPU's time does not count that of others. */
static int time_pieces(const char *path, struct err *err)
{
    double longest = 0, all = 0;
    struct live_save save;
    struct live_plan l;
    bool more = true;
    int n = 0;

    if (live_plan_open(&l, path, err))
        return err->code;
    double start = cpu_seconds();
    int code = live_save_begin(&l, &save, err);
    for (; !code && more; n++) {
        more = live_save_go_on(&l);
        double now = cpu_seconds(), took = now - start;
        longest = took > longest ? took : longest;
        all += took;
        start = now;
    }
    live_save_end(&l);
    if (!code)
        live_save_release(&save);
    live_plan_close(&l);
    printf("a save stops events %d times, for %.2f ms of CPU at most, %.0f ms together\n", n, 1e3 * longest, 1e3 * all);
    return code;
}

static int library(struct bench *b, const char *path, struct evp_error *error)
{
    static const struct {
        enum event event;
        const char *name; // NULL: not reported
    } phase[] = { { ADMIT_HULL, "admit, hull variants" },
                  { UPDATE, "update, frequency" },
                  { REMOVE, "remove" },
                  { ADMIT_ALL, "admit, 60 variants" } };
    struct evp_plan *plan;
    double start = clock_now();

    if (evp_plan_open(&plan, path, error))
        return error->code;
    printf("opened in %.2f s\n", clock_now() - start);
    for (int p = 0; p < 4; p++) {
        for (int k = 0; k < b->n_events; k++)
            if (one_event(b, plan, phase[p].event, k, error))
                return error->code;
        report(b, phase[p].name);
    }
    if (time_uses(b, plan, error))
        return error->code;
    start = clock_now();
    int code = evp_plan_save(plan, path, error);
    printf("saved in %.2f s\n", clock_now() - start);
    if (!code)
        code = save_beside_events(b, plan, path, error);
    evp_plan_close(plan);
    return code;
}

static int run(struct bench *b, int n, uint64_t seed, struct err *err)
{
    char path[] = "/tmp/evp-admit-XXXXXX";
    struct evp_error error;
    struct plan plan;
    uint64_t bytes;

    if (instance_make(&b->in, INSTANCE_REAL, n + b->n_events, seed, err))
        return err->code;
    memset(b->digest, '0', DIGEST_HEX - 1);
    static const char *const method[] = { "keydiff", "knorm", "snapkv", "tova" };
    for (int v = 0; v < V; v++)
        snprintf(b->config[v], sizeof(b->config[v]), "%s:drop=0.%02d", method[v / 15], 1 + v % 15);
    for (int t = 0; t < T; t++)
        tier[t].capacity = b->in.capacity[t];
    b->problem = (struct plan_problem){ n, V, T, b->in.capacity, candidates, b, NULL };
    b->seconds = calloc((size_t)b->n_events, sizeof(*b->seconds));
    if (!b->seconds || plan_candidates_init(&b->o, &b->problem, err) || hull_work_init(&b->work, &b->problem, err) ||
        plan_solve(&plan, &b->problem, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, err))
        return err_nomem(err);
    close(mkstemp(path));
    int code = write_manifest(b, &plan, path, err) || file_size(path, &bytes, err);
    plan_release(&plan);
    if (!code)
        printf("manifest of %d contexts: %.0f bytes each\n", n, (double)bytes / n);
    if (!code && library(b, path, &error))
        code = err_set(err, ERR_FAIL, "%s", error.text);
    if (!code)
        code = time_pieces(path, err);
    unlink(path);
    return code;
}

int main(int argc, char **argv)
{
    struct bench b = { .n_events = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1000 };
    struct err err;

    if (argc < 3 || b.n_events < 1) {
        fprintf(stderr, "usage: admit N SEED [EVENTS]\n");
        return 2;
    }
    int code = run(&b, (int)strtol(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), &err);
    if (code)
        fprintf(stderr, "admit: %s\n", err.msg);
    plan_candidates_release(&b.o);
    hull_work_release(&b.work);
    free(b.seconds);
    instance_release(&b.in);
    return code ? 1 : 0;
}

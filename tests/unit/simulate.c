/* Simulated requests: queues against textbooks, times worked out by hand, and the law of Little. */
#include "replay/simulate.h"

#include "base/rng.h"
#include "replay/reading.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { LONG = 400000, BATCHES = 20, SEED = 100 };
static const double ns = 1e9;

struct world {
    double *gpu_s, *read, *write, *kept; // (n) by request; NULL: nothing
    int finished;
};

static double arrive(void *arg, int i, struct sim_bytes *read)
{
    struct world *w = arg;

    read->at[0] = w->read ? w->read[i] : 0;
    read->kept = w->kept ? w->kept[i] : 0;
    return w->gpu_s ? w->gpu_s[i] : 0;
}

static int finish(void *arg, int i, struct sim_bytes *written, struct err *err)
{
    struct world *w = arg;

    (void)err;
    written->at[0] = w->write ? w->write[i] : 0;
    w->finished++;
    return 0;
}

static struct simulation simulation_of(struct world *w, const struct tiers *tiers, const int64_t *at, int n, int n_gpus)
{
    double *ttft_s = calloc((size_t)n + 1, sizeof(*ttft_s));

    return (struct simulation){ .at = at,
                                .n = n,
                                .tiers = tiers,
                                .n_gpus = n_gpus,
                                .policy = { arrive, NULL, finish, NULL, NULL, w },
                                .ttft_s = ttft_s };
}

static double exponential(struct rng *r)
{
    return -log(1 - rng_unit(r));
}

/* Arrivals with a rate per second. */
static int64_t *poisson(double rate, int n, uint64_t seed)
{
    struct rng r = rng_new(seed);
    int64_t *at = malloc((size_t)n * sizeof(*at));
    double now = 0;

    for (int i = 0; i < n; i++) {
        now += exponential(&r) / rate;
        at[i] = (int64_t)(now * ns);
    }
    return at;
}

static double *services(bool random, int n, uint64_t seed)
{
    struct rng r = rng_new(seed);
    double *s = malloc((size_t)n * sizeof(*s));

    for (int i = 0; i < n; i++)
        s[i] = random ? exponential(&r) : 1;
    return s;
}

/* The mean is within three standard errors, from batch means. */
static void expect_mean(const double *x, int n, double want, const char *what)
{
    double mean[BATCHES] = { 0 }, all = 0, var = 0;

    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < n / BATCHES; i++)
            mean[b] += x[b * (n / BATCHES) + i];
        mean[b] /= n / BATCHES;
        all += mean[b] / BATCHES;
    }
    for (int b = 0; b < BATCHES; b++)
        var += (mean[b] - all) * (mean[b] - all) / (BATCHES - 1);
    cr_expect(fabs(all - want) <= 3 * sqrt(var / BATCHES), "%s: %g, not %g within %g", what, all, want,
              3 * sqrt(var / BATCHES));
}

static void expect_little(const struct simulation *s)
{
    double sum = 0;

    for (int i = 0; i < s->n; i++)
        sum += s->ttft_s[i];
    cr_expect(fabs(s->in_system_s - sum) <= 1e-9 * sum, "%.12g in the system, %.12g waited", s->in_system_s, sum);
}

static void run(struct simulation *s)
{
    struct err err;

    cr_assert_eq(simulate(s, &err), 0);
    cr_expect_eq(((struct world *)s->policy.arg)->finished, s->n);
    expect_little(s);
}

static struct tier disk = {
    .name = "disk", .capacity = INT64_MAX, .read_bytes_per_s = 100, .write_bytes_per_s = 50, .latency_s = 0
};
static const struct tiers none = { NULL, 0 };

/* C: probability of waiting, by Erlang. */
static double erlang_c(int c, double load)
{
    double sum = 0, term = 1;

    for (int k = 0; k < c; k++) {
        sum += term;
        term *= load / (k + 1);
    }
    double last = term / (1 - load / c);
    return last / (sum + last);
}

Test(simulate, gpus_are_the_textbooks_queues, .timeout = 120)
{
    const double rho[] = { 0.3, 0.6, 0.9 };
    const int servers[] = { 1, 4, 16 };

    for (int k = 0; k < 3; k++) {
        for (int c = -1; c < 3; c++) { /* -1: one server with a constant time */
            int n_gpus = c < 0 ? 1 : servers[c];
            int64_t *at = poisson(rho[k] * n_gpus, LONG, SEED + (uint64_t)k);
            struct world w = { .gpu_s = services(c >= 0, LONG, SEED + 10 + (uint64_t)k) };
            struct simulation s = simulation_of(&w, &none, at, LONG, n_gpus);
            run(&s);
            double wait = c < 0 ? rho[k] / 2 / (1 - rho[k]) : erlang_c(n_gpus, rho[k] * n_gpus) / n_gpus / (1 - rho[k]);
            expect_mean(s.ttft_s, LONG, 1 + wait, c < 0 ? "M/D/1" : "M/M/c");
            free(at);
            free(w.gpu_s);
            free(s.ttft_s);
        }
    }
}

Test(simulate, a_tier_is_shared_equally, .timeout = 120)
{
    const struct tiers tiers = { &disk, 1 };

    for (int random = 0; random < 2; random++) {
        for (int k = 0; k < 3; k++) {
            const double rho = 0.3 * (k + 1);
            int64_t *at = poisson(rho, LONG, 3);
            struct world w = { .read = services(random, LONG, 4) };
            for (int i = 0; i < LONG; i++)
                w.read[i] *= disk.read_bytes_per_s;
            struct simulation s = simulation_of(&w, &tiers, at, LONG, 1);
            run(&s);
            expect_mean(s.ttft_s, LONG, 1 / (1 - rho), "M/G/1-PS"); /* whatever the distribution */
            cr_expect_float_eq(s.tier_busy_s[0] / s.end_s, rho, 0.02);
            free(at);
            free(w.read);
            free(s.ttft_s);
        }
    }
}

Test(simulate, times_by_hand)
{
    struct tier_load loads[] = { { 2, 150, 0 } };
    struct tier two = disk;
    const struct tiers tiers = { &two, 1 };
    const int64_t at[] = { 0, (int64_t)(1 * ns), (int64_t)(1 * ns) };
    double gpu[] = { 1, 1, 0.5 }, read[] = { 300, 0, 150 }, write[] = { 0, 150, 0 };
    struct world w = { .gpu_s = gpu, .read = read, .write = write };
    struct err err;

    two.latency_s = 0.5;
    cr_assert_eq(tier_add_load(&two, &loads[0], &err), 0);
    struct simulation s = simulation_of(&w, &tiers, at, 3, 1);
    run(&s);
    /* 1 computes from 1 to 2, and what it then writes takes the tier like a read of 300 bytes, until long after the
     * others. 0 reads 100 bytes alone from 0.5 to 1.5, 37.5 beside 2 from 1.5 to 2, then 50 bytes/s of three: its last
     * 162.5 end at 5.25; 2 has read 37.5 at 2, 150 at 4.25, and computes to 4.75. Then two share 150 bytes/s: 0 has
     * 50 bytes left at 4.25, and ends at 4.25 + 50 / 75. */
    cr_expect_float_eq(s.ttft_s[1], 1, 1e-8);
    cr_expect_float_eq(s.ttft_s[2], 4.25 + 0.5 - 1, 1e-8);
    cr_expect_float_eq(s.ttft_s[0], 4.25 + 50.0 / 75 + 1, 1e-8);
    s.alone = true;
    w.finished = 0;
    run(&s);
    cr_expect_float_eq(s.ttft_s[0], 0.5 + 3 + 1, 1e-8);
    cr_expect_float_eq(s.ttft_s[1], 1, 1e-8);
    cr_expect_float_eq(s.ttft_s[2], 0.5 + 1.5 + 0.5, 1e-8);
    free(s.ttft_s);
    free(two.load);
}

struct writer {
    struct world w;
    double room[3]; // by request
};

static int write_what_fits(void *arg, int i, struct sim_bytes *written, struct err *err)
{
    struct writer *w = arg;

    (void)err;
    w->w.finished++;
    w->room[i] = written->room[0];
    written->at[0] = fmin(w->w.write[i], written->room[0]);
    return 0;
}

Test(simulate, writes_wait_in_a_queue_of_a_second)
{
    const struct tiers tiers = { (struct tier *)&disk, 1 };
    const int64_t at[] = { 0, (int64_t)(0.5 * ns), (int64_t)(0.75 * ns) }, together[] = { 0, 0, 1 };
    double write[] = { 70, 20, 70 }, small[] = { 25, 25, 0 }, read[] = { 0, 0, 30 };
    struct writer w = { .w.write = write };

    /* Of 50 bytes a second: 50 of 70, which are 25 after half a second; 20 more, so 45, of which 12.5 are gone. */
    struct simulation s = simulation_of(&w.w, &tiers, at, 3, 1);
    s.policy.finish = write_what_fits;
    run(&s);
    cr_expect_float_eq(w.room[0], 50, 1e-6);
    cr_expect_float_eq(w.room[1], 25, 1e-6);
    cr_expect_float_eq(w.room[2], 17.5, 1e-6);
    /* A read of 30 bytes beside two writes has half of the bandwidth: one is written after the other. */
    s.at = together;
    w.w.write = small;
    w.w.read = read;
    w.w.finished = 0;
    run(&s);
    cr_expect_float_eq(s.ttft_s[2], 30 / 50.0, 1e-6);
    cr_expect_float_eq(s.tier_read_s[0], 0.3, 1e-6);
    s.alone = true;
    w.w.finished = 0;
    run(&s);
    cr_expect(isinf(w.room[2]));
    free(s.ttft_s);
}

/* What is left to compute when the turn comes, half a second. */
static double less(void *arg, int i, double gpu_s)
{
    (void)arg, (void)i;
    return gpu_s - 1.5;
}

Test(simulate, who_has_waited_for_a_gpu_looks_again)
{
    const int64_t at[] = { 0, 0, (int64_t)(0.5 * ns), (int64_t)(9 * ns) };
    double gpu[] = { 2, 2, 2, 2 };
    struct world w = { .gpu_s = gpu };
    struct simulation s = simulation_of(&w, &none, at, 4, 1);

    s.policy.turn = less;
    run(&s);
    cr_expect_float_eq(s.ttft_s[0], 2, 1e-9);
    cr_expect_float_eq(s.ttft_s[1], 2.5, 1e-9);
    cr_expect_float_eq(s.ttft_s[2], 2.5, 1e-9);
    cr_expect_float_eq(s.ttft_s[3], 2, 1e-9); /* it does not wait */
    cr_expect_float_eq(s.gpu_busy_s, 5, 1e-9);
    free(s.ttft_s);
}

/* Three pieces of work, half a second, nothing and two seconds; then none. */
struct worker {
    struct world w;
    int asked, done;
};

static double idle(void *arg)
{
    static const double piece[] = { 0.5, 0, 2 };
    struct worker *k = arg;

    return k->asked < 3 ? piece[k->asked++] : -1;
}

static int worked(void *arg, struct sim_bytes *written, struct err *err)
{
    (void)err;
    written->at[0] = ++((struct worker *)arg)->done == 3 ? 150 : 0;
    return 0;
}

Test(simulate, an_idle_gpu_works_for_the_policy_piece_by_piece)
{
    const struct tiers tiers = { &disk, 1 };
    const int64_t at[] = { 0, (int64_t)(1.2 * ns), (int64_t)(2 * ns) };
    double gpu[] = { 1, 0.5, 0.25 }, read[] = { 0, 0, 250 };
    struct worker k = { .w = { .gpu_s = gpu, .read = read } };
    struct simulation s = simulation_of(&k.w, &tiers, at, 3, 1);

    s.policy = (struct sim_policy){ arrive, NULL, finish, idle, worked, &k };
    run(&s);
    /* The first piece takes the GPU from 1 to 1.5, 1 from then to 2, the last piece to 4; what it writes, 300 bytes of
     * reading, slows down the last 50 bytes of 2, from 4 to 5. */
    cr_expect_float_eq(s.ttft_s[0], 1, 1e-8);
    cr_expect_float_eq(s.ttft_s[1], 0.8, 1e-8);
    cr_expect_float_eq(s.ttft_s[2], 3.25, 1e-8);
    cr_expect_float_eq(s.gpu_busy_s, 4.25, 1e-8);
    cr_expect_eq(k.done, 3);
    k = (struct worker){ .w = { .gpu_s = gpu } };
    s.alone = true; /* nobody waits, and nothing is being written */
    run(&s);
    for (int i = 0; i < 3; i++)
        cr_expect_float_eq(s.ttft_s[i], gpu[i], 1e-8);
    cr_expect_float_eq(s.end_s, 1 + 2.5 + 0.75, 1e-8);
    free(s.ttft_s);
}

/* ---- steps ------------------------------------------------------------------ */

/* Three requests on a GPU with 1 ms for a token, 1 ms to read the weights, 1 us to read the KV of a token, and 3 tokens
 * of output. A step does at most 2.048 s of prefills. */
static void run_steps(double memory_bytes, double *ttft_s, double *e2e_s)
{
    static const int64_t at[] = { 0, 1000, 60000000000 };
    double gpu_s[] = { 3, 0.1, 0.0005 }, kept[] = { 400e6, 200e6, 5e9 };
    struct world w = { .gpu_s = gpu_s, .kept = kept };
    const struct tiers no_tiers = { 0 };
    const struct steps_gpu gpu = {
        .token_s = 1e-3, .weights_bytes = 1e9, .kv_token_bytes = 1e6, .memory_bytes = memory_bytes, .bytes_per_s = 1e12
    };
    static const int32_t output[] = { 3, 3, 3 };
    struct simulation s = simulation_of(&w, &no_tiers, at, 3, 1);
    struct err err;

    free(s.ttft_s);
    s.ttft_s = ttft_s;
    s.e2e_s = e2e_s;
    s.gpu = &gpu;
    s.output = output;
    cr_assert_eq(simulate(&s, &err), 0);
    cr_expect_eq(w.finished, 3);
    cr_expect_float_eq(s.in_system_s, ttft_s[0] + ttft_s[1] + ttft_s[2], 1e-9);
}

Test(simulate, steps_share_a_gpu_between_prefills_and_tokens)
{
    double ttft_s[4], e2e_s[4];

    /* The first one alone: 2.048 s. Then the rest of it, .952 s, and the second one. Then two steps of two tokens. */
    run_steps(10e9, ttft_s, e2e_s);
    cr_expect_float_eq(ttft_s[0], 3.1, 1e-9);
    cr_expect_float_eq(ttft_s[1], 3.1 - 1e-6, 1e-9);
    cr_expect_float_eq(e2e_s[0], 3.104, 1e-9);
    cr_expect_float_eq(e2e_s[1], 3.104 - 1e-6, 1e-9);
    /* The third one: a step is no shorter than reading the weights; then the KV of 5 GB and one or two tokens, too. */
    cr_expect_float_eq(ttft_s[2], 1e-3, 1e-9);
    cr_expect_float_eq(e2e_s[2], 1e-3 + 6.001e-3 + 6.002e-3, 1e-9);

    /* Memory for 1.5 GB: the second one waits until the first is done, 3.004 s. The third runs alone. */
    run_steps(1.5e9, ttft_s, e2e_s);
    cr_expect_float_eq(ttft_s[0], 3, 1e-9);
    cr_expect_float_eq(e2e_s[0], 3 + 2 * 1.4e-3 + 3e-6, 1e-9);
    cr_expect_float_eq(ttft_s[1], 3 + 2 * 1.4e-3 + 3e-6 + 0.1 - 1e-6, 1e-9);
    cr_expect_float_eq(ttft_s[2], 1e-3, 1e-9);
}

Test(simulate, an_idle_gpu_works_in_steps)
{
    static const int64_t at[] = { 0, 1000000000 };
    static const int32_t output[] = { 1, 1 };
    double gpu_s[] = { 0.25, 0.25 }, e2e_s[2];
    struct worker k = { .w = { .gpu_s = gpu_s }, .asked = 2, .done = 2 };
    const struct steps_gpu gpu = {
        .token_s = 0.5e-3, .weights_bytes = 1e9, .kv_token_bytes = 1e6, .memory_bytes = 1e12, .bytes_per_s = 1e12
    };
    struct simulation s = simulation_of(&k.w, &(struct tiers){ &disk, 1 }, at, 2, 1);

    s.policy = (struct sim_policy){ arrive, NULL, finish, idle, worked, &k };
    s.gpu = &gpu;
    s.output = output;
    s.e2e_s = e2e_s;
    run(&s);
    /* Work of 2 s begins at 0.25, in steps of 1.024 s; the request at 1 joins its second step for 0.048 s, and has the
     * third one for itself. */
    cr_expect_float_eq(s.ttft_s[0], 0.25, 1e-8);
    cr_expect_float_eq(s.ttft_s[1], 0.25 + 2 + 0.25 - 1, 1e-8);
    cr_expect_eq(k.done, 3);
    free(s.ttft_s);
}

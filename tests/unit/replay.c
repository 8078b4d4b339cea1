/* Replays: hits of two tiers against lists that are searched block by block, runs against their definition, queues
 * against textbooks, times worked out by hand. */
#include "replay/replay.h"

#include "base/rng.h"
#include "replay/lru_stack.h"
#include "replay/runs.h"
#include "replay/station.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 60, REQUESTS = 400, POLICIES = 7, UNITS = 10 };

struct stream {
    int32_t parent[BLOCKS];
    struct replay_request request[REQUESTS];
    struct replay replay;
};

static int depth_of(const struct stream *s, int32_t block)
{
    return block < 0 ? 0 : 1 + depth_of(s, s->parent[block]);
}

/* A random tree, deep and narrow or flat, and prompts that end in its blocks or within the first one. */
static void make_stream(struct stream *s, uint64_t seed)
{
    struct rng r = rng_new(seed);
    uint64_t reach = 1 + rng_below(&r, 20), used = 1 + rng_below(&r, BLOCKS);

    memset(s, 0, sizeof(*s));
    for (int i = 0; i < BLOCKS; i++)
        s->parent[i] =
            i && rng_below(&r, 8) ? i - 1 - (int32_t)rng_below(&r, (uint64_t)i < reach ? (uint64_t)i : reach) : -1;
    for (int i = 0; i < REQUESTS; i++) {
        int32_t block = (int32_t)rng_below(&r, used + 1) - 1;
        s->request[i] = (struct replay_request){ .block = block, .number = i, .units = depth_of(s, block) * UNITS + 1 };
    }
    s->replay = (struct replay){ .request = s->request,
                                 .n_requests = REQUESTS,
                                 .parent = s->parent,
                                 .n_blocks = BLOCKS,
                                 .block_units = UNITS,
                                 .n_gpus = 1 };
}

/* ---- a cache of two lists -------------------------------------------------- */

struct lists {
    int32_t at[2][BLOCKS + 1]; // DRAM, SSD; the block used last first
    int n[2];
};

static int find_in(const struct lists *c, int tier, int32_t block)
{
    for (int i = 0; i < c->n[tier]; i++)
        if (c->at[tier][i] == block)
            return i;
    return -1;
}

static void take_out(struct lists *c, int32_t block)
{
    for (int tier = 0; tier < 2; tier++) {
        int i = find_in(c, tier, block);
        if (i < 0)
            continue;
        memmove(&c->at[tier][i], &c->at[tier][i + 1], (size_t)(c->n[tier] - i - 1) * sizeof(int32_t));
        c->n[tier]--;
    }
}

/* The block comes first in a tier; what no longer fits goes to the next, or away. */
static void put_in(struct lists *c, int tier, int32_t block, const int64_t capacity[2])
{
    if (tier == 2)
        return;
    memmove(&c->at[tier][1], &c->at[tier][0], (size_t)c->n[tier] * sizeof(int32_t));
    c->at[tier][0] = block;
    if (++c->n[tier] > capacity[tier])
        put_in(c, tier + 1, c->at[tier][--c->n[tier]], capacity);
}

/* Blocks of a prompt found from its first one on, in both tiers. */
static void look_up(const struct lists *c, const struct stream *s, int32_t block, int64_t found[2])
{
    int32_t path[BLOCKS];
    int n = 0;

    for (; block >= 0; block = s->parent[block])
        path[n++] = block;
    for (int tier = 0; tier < 2; tier++)
        for (found[tier] = 0; n > 0 && find_in(c, tier, path[n - 1]) >= 0; n--)
            found[tier]++;
}

static struct replay_outcome replay_lists(const struct stream *s, const struct replay_policy *p)
{
    const int64_t capacity[2] = { p->dram, p->ssd };
    struct replay_outcome o = { 0 };
    struct lists c = { .n = { 0, 0 } };
    int64_t found[2];

    for (int i = 0; i < REQUESTS; i++) {
        look_up(&c, s, s->request[i].block, found);
        o.dram += found[0] * UNITS;
        o.ssd += found[1] * UNITS;
        o.computed += s->request[i].units - (found[0] + found[1]) * UNITS;
        for (int32_t b = s->request[i].block; b >= 0; b = s->parent[b]) {
            take_out(&c, b);
            put_in(&c, 0, b, capacity);
        }
    }
    return o;
}

static const struct replay_policy policies[POLICIES] = { { 0, 0, 1 }, { 1, 0, 1 },   { 5, 0, 1 }, { 0, 7, 1 },
                                                         { 4, 9, 1 }, { 20, 20, 1 }, { 60, 1, 1 } };

Test(replay, both_tiers_hold_what_lists_of_blocks_hold)
{
    struct replay_outcome out[POLICIES];
    struct stream s;
    struct err err;

    for (uint64_t seed = 0; seed < 200; seed++) {
        make_stream(&s, seed);
        s.replay.policy = policies;
        s.replay.n_policies = POLICIES;
        cr_assert_eq(replay_run(&s.replay, out, &err), 0);
        for (int p = 0; p < POLICIES; p++) {
            struct replay_outcome want = replay_lists(&s, &policies[p]);
            cr_assert(out[p].dram == want.dram && out[p].ssd == want.ssd && out[p].computed == want.computed,
                      "seed %d policy %d: %lld %lld %lld, lists %lld %lld %lld", (int)seed, p, (long long)out[p].dram,
                      (long long)out[p].ssd, (long long)out[p].computed, (long long)want.dram, (long long)want.ssd,
                      (long long)want.computed);
        }
    }
}

/* ---- runs ------------------------------------------------------------------ */

Test(replay, runs_are_the_longest_chains_without_an_end_or_a_branch)
{
    //  0-1-2 ends, -3-4 ends, -5-6 ends after 2 as well; 7 alone
    const int32_t parent[] = { -1, 0, 1, 2, 3, 2, 5, -1 };
    uint8_t ends[] = { 0, 0, 0, 0, 1, 0, 1, 1 };
    static const int32_t of[] = { 0, 0, 0, 1, 1, 2, 2, 3 };
    struct runs runs;
    struct err err;

    cr_assert_eq(runs_make(&runs, parent, ends, 8, &err), 0);
    cr_assert_eq(runs.n, 4);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(runs.of[i], of[i]);
    cr_assert(runs.at[0].n == 3 && runs.at[1].n == 2 && runs.at[1].parent == 0 && runs.at[3].parent == -1);
    runs_release(&runs);
    uint8_t within[] = { 0, 1, 0, 0, 1, 0, 1, 1 };
    cr_assert_eq(runs_make(&runs, parent, within, 8, &err), 0);
    cr_assert(runs.n == 5 && runs.of[1] == 0 && runs.of[2] == 1);
    runs_release(&runs);
    cr_assert_eq(runs_make(&runs, parent, within, 0, &err), 0);
    runs_release(&runs);
}

/* ---- queues ---------------------------------------------------------------- */

enum { ARRIVALS = 400000 };

static double next_arrival(struct rng *r, double now, double rate)
{
    return now - log(1 - rng_unit(r)) / rate;
}

/* M/D/1 waits rho * s / (2 * (1 - rho)) in the mean (Pollaczek and Khinchine). */
Test(replay, one_gpu_waits_as_the_textbook_says)
{
    struct replay_request *request = calloc(ARRIVALS, sizeof(*request));
    const struct replay_policy none = { 0, 0, 1 };

    for (int k = 0; k < 2; k++) {
        double rho = k ? 0.8 : 0.3, now = 1e9, want = 0.5 + rho * 0.5 / (2 * (1 - rho));
        struct rng r = rng_new(3);
        struct replay_outcome out;
        struct err err;
        for (int i = 0; i < ARRIVALS; i++)
            request[i] =
                (struct replay_request){ .at = now = next_arrival(&r, now, rho / 0.5), .units = 5, .block = -1 };
        const struct replay replay = { .request = request,
                                       .n_requests = ARRIVALS,
                                       .block_units = 1,
                                       .timed = true,
                                       .unit_s = 0.1,
                                       .n_gpus = 1,
                                       .policy = &none,
                                       .n_policies = 1 };
        cr_assert_eq(replay_run(&replay, &out, &err), 0);
        cr_assert(fabs(out.ttft_s - want) < 0.02 * want, "rho %g: %g instead of %g", rho, out.ttft_s, want);
        cr_assert(fabs(out.busy_s - 0.5 * ARRIVALS) < 1e-6 * ARRIVALS);
    }
    free(request);
}

/* M/M/4 at rho 0.8: Erlang's C is 0.5964, and C * s / (4 * (1 - rho)) the mean wait. */
Test(replay, four_servers_wait_as_erlang_says)
{
    struct rng arrivals = rng_new(4), services = rng_new(5);
    struct station s;
    struct err err;
    double now = 0, waits = 0, want = 0.5964 / (4 * 0.2);

    cr_assert_eq(station_open(&s, 4, &err), 0);
    for (int i = 0; i < ARRIVALS; i++) {
        double seconds = next_arrival(&services, 0, 1);
        now = next_arrival(&arrivals, now, 3.2);
        waits += station_serve(&s, now, seconds) - now - seconds;
    }
    station_close(&s);
    cr_assert(fabs(waits / ARRIVALS - want) < 0.04 * want, "%g instead of %g", waits / ARRIVALS, want);
}

/* Prompts of 3 blocks of 10 units, and 5 units: 1 s a unit, 0.1 s to read one from DRAM, 0.5 s from SSD; half of that
 * with factor 2. One GPU.
 *
 *     0 s     A  35 computed                                     done at 35
 *     10 s    B  another prompt, 35 computed, from 35 on         done at 70:  60 s
 *     100 s   A  DRAM has B, SSD has A: 30 read until 115, 3 + 5 done at 123: 23 s
 *     101 s   B  A is in DRAM, B on SSD: waits until 115, read until 130, then 3 + 5: 138, 37 s
 *     116 s   C  without blocks, 5 units: the GPU is busy until 123: 128, 12 s; so B's turn at 130 does not wait */
Test(replay, requests_read_then_wait_then_compute)
{
    const int32_t parent[] = { -1, 0, 1, -1, 3, 4 };
    struct replay_request request[] = {
        { 116, 5, -1, 4 }, { 100, 35, 2, 2 }, { 0, 35, 2, 0 }, { 101, 35, 5, 3 }, { 10, 35, 5, 1 }
    };
    static const struct replay_policy some[] = { { 3, 3, 1 }, { 3, 3, 2 } };
    struct replay replay = { .request = request,
                             .n_requests = 5,
                             .parent = parent,
                             .n_blocks = 6,
                             .block_units = 10,
                             .timed = true,
                             .unit_s = 1,
                             .dram_unit_s = 0.1,
                             .ssd_unit_s = 0.5,
                             .n_gpus = 1,
                             .policy = some,
                             .n_policies = 2 };
    struct replay_outcome out[2];
    struct err err;

    replay_sort(&replay);
    cr_assert(request[0].number == 0 && request[4].number == 4);
    cr_assert_eq(replay_run(&replay, out, &err), 0);
    cr_assert(out[0].dram == 0 && out[0].ssd == 60 && out[0].computed == 85);
    cr_assert_float_eq(out[0].ttft_s, (35 + 60 + 23 + 37 + 12) / 5.0, 1e-9);
    cr_assert_float_eq(out[0].prefill_s, 85, 1e-9);
    cr_assert_float_eq(out[0].busy_s, 91, 1e-9);
    cr_assert(fabs(out[0].ssd_s - 30) < 1e-9 && fabs(out[1].ssd_s - 15) < 1e-9);
    /* factor 2: A reads until 107.5, 1.5 + 5 until 114; B reads until 115, until 121.5; C until 126.5 */
    cr_assert_float_eq(out[1].ttft_s, (35 + 60 + 14 + 20.5 + 10.5) / 5.0, 1e-9);
    replay.timed = false; // nobody waits
    cr_assert_eq(replay_run(&replay, out, &err), 0);
    cr_assert_float_eq(out[0].ttft_s, (35 + 35 + 23 + 23 + 5) / 5.0, 1e-9);
}

/* A prompt of which all is found still computes its last unit; later units take longer. */
Test(replay, the_first_token_is_computed)
{
    const int32_t parent[] = { -1, 0 };
    struct replay_request request[] = { { 0, 15, 1, 0 }, { 1, 15, 1, 1 } };
    static const struct replay_policy all = { 9, 0, 1 };
    const struct replay replay = { .request = request,
                                   .n_requests = 2,
                                   .parent = parent,
                                   .n_blocks = 2,
                                   .block_units = 10,
                                   .unit_s = 1,
                                   .pair_s = 0.1,
                                   .n_gpus = 1,
                                   .policy = &all,
                                   .n_policies = 1 };
    struct replay_outcome out;
    struct err err;

    cr_assert_eq(replay_run(&replay, &out, &err), 0);
    cr_assert(out.dram == 14 && out.computed == 16);
    cr_assert_float_eq(out.prefill_s, 15 + 0.1 * 225 / 2 + 1 + 0.1 * (225 - 196) / 2.0, 1e-9);
}

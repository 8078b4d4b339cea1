/* evp_world.c - draws contexts and tiers, and writes the manifest that `evp-plan --online` would. */
#include "tests/unit/evp_world.h"

#include "base/file.h"
#include "planner/utility.h"

#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

const char *const world_config[VARIANTS] = { "none", "keydiff:drop=0.5", "kivi:bits=4", "kivi:bits=2",
                                             "knorm:drop=0.9" };

char world_path[] = "/tmp/evp-plan-XXXXXX", world_other_path[] = "/tmp/evp-plan-XXXXXX";

void world_open_files(void)
{
    close(mkstemp(world_path));
    close(mkstemp(world_other_path));
}

void world_remove_files(void)
{
    unlink(world_path);
    unlink(world_other_path);
}

void world_draw_context(struct world *w, struct rng *r, int i)
{
    w->frequency[i] = (double)rng_below(r, 6);
    w->prefill_s[i] = 3 * rng_unit(r);
    for (int v = 0; v < VARIANTS; v++)
        w->variant[i][v] =
            (struct variant_info){ world_config[v], (int64_t)rng_below(r, 100), rng_unit(r), rng_unit(r) };
}

void world_draw(struct world *w, struct rng *r, int n)
{
    static char uri[TIERS][16] = { "/dev/shm/a", "/var/tmp/a", "/mnt/a" };

    *w = (struct world){ .alpha = 2 * rng_unit(r), .tiers = { w->tier, 1 + (int)rng_below(r, TIERS) } };
    for (int t = 0; t < w->tiers.n; t++) {
        w->capacity[t] = rng_below(r, 8) == 0 ? INT64_MAX : (int64_t)rng_below(r, 300);
        w->tier[t] = (struct tier){
            .name = "t", .kind = TIER_FILE, .uri = uri[t], .capacity = w->capacity[t], .write_bytes_per_s = 1
        };
        w->tier[t].read_bytes_per_s = 100 * rng_unit(r) + 1;
        w->tier[t].latency_s = rng_unit(r);
        w->tier[t].name[1] = (char)('0' + t);
        w->tier[t].read_spread = rng_unit(r);
        tier_set_reads(&w->tier[t], 1 + (int)rng_below(r, 3));
    }
    if (rng_below(r, 2)) {
        w->slo_ttft_s = 2 * rng_unit(r);
        w->slo_weight = 10 * rng_unit(r);
    }
    for (int i = 0; i < CONTEXTS; i++) {
        snprintf(w->id[i], sizeof(w->id[i]), "context/%d", i);
        w->there[i] = i < n;
        w->prefill_sd_s[i] = i < n ? rng_unit(r) : 0;
        w->question_sd_s[i] = i < n ? rng_unit(r) : 0;
        w->at[i] = (struct plan_placement){ 0, PLAN_RECOMPUTE };
        world_draw_context(w, r, i);
    }
}

const char *world_digest(int i)
{
    static _Thread_local char hex[DIGEST_HEX];

    snprintf(hex, sizeof(hex), "%064x", i);
    return hex;
}

/* What `evp-plan --online` would write. */
void world_write(struct world *w, const struct plan *plan)
{
    struct manifest m = { .alpha = w->alpha,
                          .slo_ttft_s = w->slo_ttft_s,
                          .slo_weight = w->slo_weight,
                          .solver = "test",
                          .upper_bound = plan->upper_bound,
                          .gap = (double)NAN,
                          .max_move = INT64_MAX,
                          .tiers = w->tiers,
                          .borrows = true };
    struct err err;

    memset(m.model_digest, 'a', DIGEST_HEX - 1);
    memcpy(m.price, plan->price, sizeof(m.price));
    for (int i = 0; i < plan->n_contexts; i++) {
        struct plan_placement c = w->at[i] = plan->placement[i];
        struct variants variants = { w->variant[i], VARIANTS,           w->prefill_s[i],     0.25, 0,
                                     NULL,          w->prefill_sd_s[i], w->question_sd_s[i], { 0 } };
        struct placement p = { .id = w->id[i],
                               .token_digest = world_digest(i),
                               .config = "none",
                               .tier = c.tier,
                               .n_tokens = 7,
                               .quality = 1,
                               .quality_test = 0.5,
                               .ttft_s = 1,
                               .frequency = w->frequency[i],
                               .operation = OP_NONE,
                               .variants = &variants };
        if (c.tier >= 0) {
            p.config = world_config[c.config];
            p.bytes = w->variant[i][c.config].bytes;
            p.quality = w->variant[i][c.config].quality;
            p.operation = OP_INSERT;
            p.payload = w->id[i] + 8;
            p.quality_sd = 0.125;
            p.unmeasured = i % 2 == 0;
            w->fill[c.tier] += p.bytes;
        }
        cr_assert_eq(manifest_add(&m, &p, &err), 0, "%s", err.msg);
    }
    cr_assert_eq(manifest_write(&m, world_path, (struct rows_made){ .tool = "test" }, &err), 0, "%s", err.msg);
    manifest_release(&m);
}

double world_candidates(const struct world *w, int i, int64_t *bytes, double *out)
{
    const struct plan_goal goal = { w->alpha, w->slo_ttft_s, w->slo_weight };

    for (int v = 0; v < VARIANTS; v++) {
        const struct variant_info *f = &w->variant[i][v];
        bytes[v] = f->bytes;
        for (int t = 0; t < w->tiers.n; t++) {
            double read_s = tier_read_s(&w->tier[t], f->bytes),
                   sd_s = sd_of_sum(tier_read_sd_s(&w->tier[t], read_s), w->question_sd_s[i]);
            double ttft_s = ttft_stored(read_s, f->decompress_s, 0.25);
            out[v * w->tiers.n + t] = utility(&goal, f->quality, ttft_s, sd_s, w->frequency[i]);
        }
    }
    return utility_recomputed(&goal, ttft_recomputed(w->prefill_s[i], 0.25),
                              sd_of_sum(w->prefill_sd_s[i], w->question_sd_s[i]), w->frequency[i]);
}

static double candidates(const void *arg, int context, int64_t *bytes, double *out)
{
    return world_candidates(arg, context, bytes, out); // the contexts of the plan come first
}

struct evp_plan *world_begin(struct world *w, struct rng *r, int n)
{
    struct evp_plan *plan;
    struct evp_error error;
    struct plan solved;
    struct err err;

    world_draw(w, r, n);
    struct plan_problem p = { n, VARIANTS, w->tiers.n, w->capacity, candidates, w, NULL };
    cr_assert_eq(plan_solve(&solved, &p, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0);
    world_write(w, &solved);
    plan_release(&solved);
    cr_assert_eq(evp_plan_open(&plan, world_path, &error), EVICPRESS_OK, "%s", error.text);
    return plan;
}

int world_tier(const struct world *w, const char *name)
{
    return strcmp(name, "recompute") == 0 ? -1 : tiers_find(&w->tiers, name);
}

int world_index(const struct evp_operation *op)
{
    return (int)strtol(op->id + 8, NULL, 10);
}

void world_follow(struct world *w, const struct evp_operation *op)
{
    int i = world_index(op), from = world_tier(w, op->from_tier), to = world_tier(w, op->to_tier), v = 0;

    cr_assert_eq(w->at[i].tier, from, "%s", op->id);
    if (from >= 0)
        cr_assert_str_eq(world_config[w->at[i].config], op->from_config);
    while (to >= 0 && strcmp(world_config[v], op->to_config) != 0)
        v++;
    if (from >= 0)
        w->fill[from] -= op->from_bytes;
    if (to >= 0)
        w->fill[to] += op->to_bytes;
    for (int t = 0; t < w->tiers.n; t++)
        cr_assert(w->fill[t] >= 0 && w->fill[t] <= w->capacity[t], "tier %d holds %lld", t, (long long)w->fill[t]);
    w->at[i] = (struct plan_placement){ v, to };
    cr_assert_eq(op->kind, to < 0     ? EVICPRESS_EVICT
                           : from < 0 ? EVICPRESS_INSERT
                           : strcmp(op->from_config, op->to_config) != 0 || op->from_bytes != op->to_bytes
                               ? EVICPRESS_RECOMPRESS
                               : EVICPRESS_MOVE);
}

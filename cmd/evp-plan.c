/* evp-plan - read a utility table and tiers, place every context, write the manifest.
 *
 * Quality, bytes and times come from the table; TTFT and utility are computed here anew, from this run's tiers, alpha
 * and frequencies, so that one table serves many plans. Planning looks at the train questions only; quality on the test
 * questions is what the plan is reported with.
 */
#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/parse.h"
#include "datasets/access.h"
#include "loader/manifest.h"
#include "loader/tiers.h"
#include "planner/plan.h"
#include "planner/utility.h"
#include "profiler/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *tiers, *access, *previous, *output;
    double alpha;
    int solver;
    struct opt_common common;
} cfg = { .alpha = 1, .solver = PLAN_OPTIMAL };

static const struct opt opts[] = {
    OPT_HEAD("What is known"),
    OPT_TEXT('t', "tiers", &cfg.tiers, "FILE", "tiers.json: capacity, bandwidth and latency of each tier (required)"),
    OPT_TEXT('a', "access", &cfg.access, "FILE", "access log; without it every context counts once"),
    OPT_TEXT('p', "previous", &cfg.previous, "FILE", "the manifest in force: operations lead from it to the new one"),
    OPT_HEAD("What is wanted"),
    OPT_REAL(0, "alpha", &cfg.alpha, 0, 1e9, "seconds of TTFT that a quality of 1 is worth"),
    OPT_PICK('s', "solver", &cfg.solver, "evicpress|adaptcache|optimal",
             "how: least loss of utility, least loss per byte, or near the optimum with proof"),
    OPT_HEAD("Output"),
    OPT_TEXT('o', "output", &cfg.output, "FILE", "write the manifest there, whole or not at all, instead of to stdout"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-plan",
    .summary = "decide in which form and on which tier each KV cache lives",
    .operands = "TABLE",
    .least = 1,
    .most = 1,
    .about =
        "Reads a utility table (evp-score) and tiers.json (evp-tiers), chooses one config and tier for every context "
        "so that the sum of (alpha * quality - TTFT) * frequency is high and no tier holds more than its capacity, "
        "and writes a manifest. Not storing a context at all is always a choice. The summary on stderr compares the "
        "plan with what one would do without it, and says how far it can be from the best possible plan.",
    .examples = "  evp-plan table.h5 --tiers tiers.json >manifest.jsonl\n"
                "  evp-plan table.h5 --tiers tiers.json --access log.jsonl --previous manifest.jsonl -o new.jsonl\n",
    .opts = opts,
    .common = &cfg.common,
};

/* Everything the planning callback looks at. */
struct input {
    struct table table;
    struct tiers tiers;
    struct map ids;         // context id -> row of the table
    double *frequency;      // (C)
    struct manifest before; // n = 0 without --previous
};

/* ---- the problem as the planner sees it --------------------------------- */

static double cell_ttft(const struct input *in, int context, int config, int tier)
{
    const struct table *t = &in->table;
    size_t cell = (size_t)context * (size_t)t->n_configs + (size_t)config;

    if (tier == PLAN_RECOMPUTE)
        return ttft_recompute(t->prefill_s[context], t->question_s[context]);
    struct tier_speed speed = { in->tiers.at[tier].latency_s, in->tiers.at[tier].read_bytes_per_s };
    return ttft_stored(speed, t->cell_bytes[cell], t->decompress_s[cell], t->question_s[context]);
}

static double options(const void *arg, int context, int64_t *bytes, double *out)
{
    const struct input *in = arg;
    const struct table *t = &in->table;
    double frequency = in->frequency[context];

    for (int v = 0; v < t->n_configs; v++) {
        size_t cell = (size_t)context * (size_t)t->n_configs + (size_t)v;
        double quality = t->quality_train[cell];
        bytes[v] = isnan(quality) ? -1 : t->cell_bytes[cell];
        for (int d = 0; d < in->tiers.n; d++)
            out[v * in->tiers.n + d] = utility(cfg.alpha, quality, cell_ttft(in, context, v, d), frequency);
    }
    return utility(cfg.alpha, 1, cell_ttft(in, context, 0, PLAN_RECOMPUTE), frequency);
}

/* ---- reading ------------------------------------------------------------ */

static int read_frequencies(struct input *in, struct err *err)
{
    struct access_log log;
    int n = in->table.n_contexts;

    in->frequency = calloc((size_t)n + 1, sizeof(*in->frequency));
    if (!in->frequency)
        return err_nomem(err);
    for (int i = 0; i < n; i++) {
        if (map_add(&in->ids, in->table.context_id[i], strlen(in->table.context_id[i]), NULL) == MAP_NOMEM)
            return err_nomem(err);
        in->frequency[i] = cfg.access ? 0 : 1;
    }
    if (!cfg.access)
        return 0;
    if (access_read(&log, cfg.access, &in->ids, in->frequency, err))
        return err->code;
    if (log.unknown)
        log_warn("%lld of %lld accesses are to contexts that the table does not have", (long long)log.unknown,
                 (long long)log.rows);
    return 0;
}

static int read_input(struct input *in, const char *table, struct err *err)
{
    if (!cfg.tiers)
        return err_set(err, ERR_USAGE, "--tiers is missing");
    if (tiers_read(&in->tiers, cfg.tiers, err) || table_read(&in->table, table, TABLE_PLAN, err))
        return err->code;
    if (!in->table.quality_train)
        return err_set(err, ERR_FORMAT, "'%s' has no qualities yet: run evp-score on it", table);
    if (read_frequencies(in, err))
        return err->code;
    if (!cfg.previous)
        return 0;
    if (manifest_read(&in->before, cfg.previous, err))
        return err->code;
    if (strcmp(in->before.model_digest, in->table.model_digest) != 0)
        return err_set(err, ERR_FORMAT, "'%s' was made for another model than '%s'", cfg.previous, table);
    return 0;
}

static void input_release(struct input *in)
{
    table_release(&in->table);
    tiers_release(&in->tiers);
    map_release(&in->ids);
    free(in->frequency);
    manifest_release(&in->before);
}

/* ---- the manifest ------------------------------------------------------- */

static int add_placement(struct manifest *m, const struct input *in, const struct plan *plan, int i, struct err *err)
{
    const struct table *t = &in->table;
    struct plan_choice c = plan->choice[i];
    bool stored = c.tier != PLAN_RECOMPUTE;
    size_t cell = (size_t)i * (size_t)t->n_configs + (size_t)c.config;
    struct placement p = {
        .id = t->context_id[i],
        .token_digest = t->context_token_digest[i],
        .config = t->config_name[c.config],
        .tier = c.tier,
        .n_tokens = t->n_tokens[i],
        .bytes = stored ? t->cell_bytes[cell] : 0,
        .kv_bytes = t->kv_bytes[i],
        .quality = stored ? t->quality_train[cell] : 1,
        .quality_test = stored || isnan(t->quality_test[cell]) ? t->quality_test[cell] : 1,
        .ttft_s = cell_ttft(in, i, c.config, c.tier),
        .frequency = in->frequency[i],
    };
    p.utility = utility(cfg.alpha, p.quality, p.ttft_s, p.frequency);
    char *payload = stored ? manifest_payload_name(p.id, p.token_digest, p.config) : NULL;
    if (stored && !payload)
        return err_nomem(err);
    p.payload = payload;
    p.operation = manifest_operation(manifest_find(&in->before, p.id), &in->before.tiers, &p, &in->tiers);
    int code = manifest_add(m, &p, err);
    free(payload);
    return code;
}

/* A context that the previous manifest stores and the table no longer has must go. */
static int add_eviction(struct manifest *m, const struct placement *before, struct err *err)
{
    struct placement p = {
        .id = before->id,
        .token_digest = before->token_digest,
        .config = "none",
        .tier = PLAN_RECOMPUTE,
        .n_tokens = before->n_tokens,
        .kv_bytes = before->kv_bytes,
        .quality = 1,
        .quality_test = (double)NAN,
        .ttft_s = (double)NAN,
        .operation = OP_EVICT,
    };
    return manifest_add(m, &p, err);
}

static int fill_manifest(struct manifest *m, const struct input *in, const struct plan *plan, struct err *err)
{
    for (int i = 0; i < in->table.n_contexts; i++)
        if (add_placement(m, in, plan, i, err))
            return err_wrap(err, "context '%s'", in->table.context_id[i]);
    for (int i = 0; i < in->before.n; i++) {
        const struct placement *b = &in->before.at[i];
        if (b->tier == PLAN_RECOMPUTE || map_find(&in->ids, b->id, strlen(b->id)) != MAP_ABSENT)
            continue;
        if (add_eviction(m, b, err))
            return err->code;
    }
    return 0;
}

/* ---- beside doing without ----------------------------------------------- */

/* Means over accesses; NAN where nothing is known. */
static struct manifest_total plan_outcome(const char *name, const struct plan *plan, const struct input *in)
{
    const struct table *t = &in->table;
    double weight = 0, weight_test = 0;
    struct manifest_total sum = { .utility = plan->objective };

    for (int i = 0; i < t->n_contexts; i++) {
        struct plan_choice c = plan->choice[i];
        double f = in->frequency[i];
        bool recompute = c.tier == PLAN_RECOMPUTE;
        size_t cell = (size_t)i * (size_t)t->n_configs + (size_t)c.config;
        weight += f;
        sum.ttft_s += f * cell_ttft(in, i, c.config, c.tier);
        sum.quality += f * (recompute ? 1 : t->quality_train[cell]);
        if (isnan(t->quality_test[cell]))
            continue;
        weight_test += f;
        sum.quality_test += f * (recompute ? 1 : t->quality_test[cell]);
    }
    sum.ttft_s /= weight;
    sum.quality /= weight;
    sum.quality_test /= weight_test;
    snprintf(sum.name, sizeof(sum.name), "%s", name);
    return sum;
}

static int by_falling_frequency(const void *a, const void *b, void *frequency)
{
    double fa = ((const double *)frequency)[*(const int *)a], fb = ((const double *)frequency)[*(const int *)b];

    return fa > fb ? -1 : fa < fb ? 1 : *(const int *)a - *(const int *)b;
}

static int add_baseline(struct manifest *m, const struct plan_problem *problem, enum plan_baseline baseline,
                        const int *order, const struct input *in, struct err *err)
{
    static const char *const label[] = { "recompute everything", "uncompressed, most used first",
                                         "one config for all" };
    struct plan plan;
    char name[MANIFEST_CONFIG];
    int config;

    if (plan_baseline(&plan, problem, baseline, order, &config, err))
        return err->code;
    snprintf(name, sizeof(name), baseline == BASELINE_SINGLE ? "%s: %.80s" : "%s", label[baseline],
             in->table.config_name[config]);
    m->total[m->n_totals++] = plan_outcome(name, &plan, in);
    plan_release(&plan);
    return 0;
}

static int fill_totals(struct manifest *m, const struct plan *plan, const struct plan_problem *problem,
                       const struct input *in, struct err *err)
{
    int *order = calloc((size_t)problem->n_contexts + 1, sizeof(*order)), code = 0;

    if (!order)
        return err_nomem(err);
    for (int i = 0; i < problem->n_contexts; i++)
        order[i] = i;
    qsort_r(order, (size_t)problem->n_contexts, sizeof(*order), by_falling_frequency, in->frequency);
    m->total[m->n_totals++] = plan_outcome("this plan", plan, in);
    for (int b = 0; b < BASELINE_COUNT && !code; b++)
        code = add_baseline(m, problem, (enum plan_baseline)b, order, in, err);
    free(order);
    return code;
}

/* ---- what is said ------------------------------------------------------- */

static void say_summary(const struct plan *plan, const struct manifest *m, const struct input *in)
{
    char ttft[TEXT_SHORT], fill[TEXT_SHORT], room[TEXT_SHORT];

    for (int i = 0; i < m->n_totals; i++) {
        const struct manifest_total *t = &m->total[i];
        log_info("%-40s utility %10.4f  TTFT %9s  quality %.3f, held out %.3f", t->name, t->utility,
                 text_seconds(ttft, t->ttft_s), t->quality, t->quality_test);
    }
    for (int t = 0; t < in->tiers.n; t++) {
        const struct tier *tier = &in->tiers.at[t];
        int n = 0;
        for (int i = 0; i < plan->n_contexts; i++)
            n += plan->choice[i].tier == t;
        log_info("tier %-12s %d contexts, %s of %s", tier->name, n, text_bytes(fill, (double)plan->fill[t]),
                 tier->capacity == INT64_MAX ? "unlimited" : text_bytes(room, (double)tier->capacity));
    }
    log_info("no plan can exceed utility %.4f: this one is within %.2g %% of it", plan->upper_bound,
             100 * plan_gap(plan));
}

/* ---- the work ----------------------------------------------------------- */

static int fill_header(struct manifest *m, const struct plan *plan, const struct input *in, const char *table,
                       struct err *err)
{
    static const char *const solver[] = { "evicpress", "adaptcache", "optimal" };

    snprintf(m->model_digest, sizeof(m->model_digest), "%s", in->table.model_digest);
    snprintf(m->previous, sizeof(m->previous), "%s", in->before.digest);
    snprintf(m->solver, sizeof(m->solver), "%s", solver[cfg.solver]);
    m->alpha = cfg.alpha;
    m->objective = plan->objective;
    m->upper_bound = plan->upper_bound;
    m->gap = plan_gap(plan);
    m->tiers = in->tiers; /* borrowed until manifest_done() */
    return digest_file(table, m->table_digest, err);
}

static void manifest_done(struct manifest *m)
{
    m->tiers = (struct tiers){ 0 };
    manifest_release(m);
}

static int write_manifest(const struct manifest *m, const struct input *in, char **argv, int argc, struct err *err)
{
    const char *text = in->table.lineage;
    struct json *lineage = *text ? json_parse(text, strlen(text), err) : NULL;
    const struct json *from[] = { lineage };
    struct rows_made made = {
        .tool = tool.name, .args = argv + 1, .n_args = argc - 1, .from = from, .n_from = lineage != NULL
    };
    int code = manifest_write(m, cfg.output, made, err);

    json_free(lineage);
    return code;
}

/* Solves, writes, tells how long each took. */
static int plan_and_write(struct input *in, const char *table, char **argv, int argc, double start, struct err *err)
{
    struct plan plan = { 0 };
    struct manifest manifest = { 0 };
    int64_t capacity[TIER_MAX];
    double read = clock_now(), solved;

    for (int t = 0; t < in->tiers.n; t++)
        capacity[t] = in->tiers.at[t].capacity;
    struct plan_problem problem = { in->table.n_contexts, in->table.n_configs, in->tiers.n, capacity, options, in };
    if (plan_solve(&plan, &problem, (enum plan_solver)cfg.solver, &(struct plan_effort){ 0 }, err))
        return err->code;
    solved = clock_now();
    int code = fill_header(&manifest, &plan, in, table, err);
    if (!code)
        code = fill_manifest(&manifest, in, &plan, err);
    if (!code)
        code = fill_totals(&manifest, &plan, &problem, in, err);
    if (!code)
        code = write_manifest(&manifest, in, argv, argc, err);
    if (!code) {
        log_info("read %d contexts in %.2f s, solved in %.2f s, wrote in %.2f s", problem.n_contexts, read - start,
                 solved - read, clock_now() - solved);
        say_summary(&plan, &manifest, in);
    }
    manifest_done(&manifest);
    plan_release(&plan);
    return code;
}

static int run(const char *table, int argc, char **argv, struct err *err)
{
    struct input in = { 0 };
    double start = clock_now();
    int code = read_input(&in, table, err);

    if (!code)
        code = plan_and_write(&in, table, argv, argc, start, err);
    input_release(&in);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    status = run(argv[first], argc, argv, &err) ? log_failure(&err) : 0;
    return opt_finish(status);
}

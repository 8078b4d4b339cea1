/* placement_input.c - what evp-plan reads, and the problem it poses to the planner. */
#include "planner/placement/placement.h"

#include "base/log.h"
#include "datasets/access.h"
#include "planner/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------ */

/* An id with its first bytes, which mostly decide and spare a look at memory far away. */
struct key {
    char start[20]; // filled up with NUL
    int row;
};

static int by_id(const void *a, const void *b, void *table)
{
    const struct key *x = a, *y = b;
    const struct table *t = table;
    int starts = memcmp(x->start, y->start, sizeof(x->start));

    return starts ? starts : strcmp(t->context_id[x->row], t->context_id[y->row]);
}

static int sort_rows(struct plan_input *in, struct err *err)
{
    size_t n = (size_t)in->table.n_contexts;
    struct key *key = calloc(n + 1, sizeof(*key));

    if (!key)
        return err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const char *id = in->table.context_id[i];
        memcpy(key[i].start, id, strnlen(id, sizeof(key[i].start)));
        key[i].row = (int)i;
    }
    qsort_r(key, n, sizeof(*key), by_id, &in->table);
    for (size_t i = 0; i < n; i++)
        in->row[i] = key[i].row;
    free(key);
    return 0;
}

static int allocate(struct plan_input *in, struct err *err)
{
    size_t n = (size_t)in->table.n_contexts + 1;

    in->row = calloc(n, sizeof(*in->row));
    in->frequency = calloc(n, sizeof(*in->frequency));
    in->rule = calloc(n, sizeof(*in->rule));
    in->pin = calloc(n, sizeof(*in->pin));
    in->before = calloc(n, sizeof(*in->before));
    if (!in->row || !in->frequency || !in->rule || !in->pin || !in->before)
        return err_nomem(err);
    for (int i = 0; i < in->table.n_contexts; i++) {
        in->pin[i] = PIN_NONE;
        in->before[i].config = -1;
    }
    return sort_rows(in, err);
}

static int read_access(struct plan_input *in, const char *path, struct err *err)
{
    struct access_log log = { 0 };

    for (int i = 0; i < in->table.n_contexts; i++)
        in->frequency[i] = path ? 0 : 1;
    if (path && access_read(&log, path, &in->table.ids, in->frequency, err))
        return err->code;
    if (log.unknown)
        log_warn("%lld of %lld accesses are to contexts that the table does not have", (long long)log.unknown,
                 (long long)log.rows);
    return 0;
}

static int read_rules(struct plan_input *in, const char *path, bool lenient, struct err *err)
{
    int64_t unknown = 0, dropped = 0;

    if (path && rules_read(in->rule, path, &in->table.ids, &unknown, err))
        return err->code;
    if (unknown)
        log_warn("%lld rules are for contexts that the table does not have", (long long)unknown);
    for (int i = 0; i < in->table.n_contexts; i++) {
        const char *tier = in->rule[i].tier;
        if (!*tier)
            continue;
        int pin = tiers_find(&in->tiers, tier); /* -1 is PLAN_RECOMPUTE */
        bool there = pin >= 0 || strcmp(tier, "recompute") == 0;
        if (!there && !lenient)
            return err_set(err, ERR_FORMAT, "'%s' pins context '%s' to tier '%s', which there is not", path,
                           in->table.context_id[i], tier);
        in->pin[i] = there ? pin : PIN_NONE;
        dropped += !there;
    }
    if (dropped)
        log_warn("%lld pins to tiers that there are not were left out", (long long)dropped);
    return 0;
}

static int find_config(const struct table *t, const char *name)
{
    for (int v = 0; v < t->n_configs; v++)
        if (strcmp(t->config_name[v], name) == 0)
            return v;
    return -1;
}

/* Contexts that can stay where the previous manifest has them: same tokens, a config of the table, a tier that is left.
 */
static void find_kept(struct plan_input *in)
{
    for (int i = 0; i < in->table.n_contexts; i++) {
        const struct placement *p = manifest_find(&in->previous, in->table.context_id[i]);
        if (!p || p->tier < 0 || strcmp(p->token_digest, in->table.context_token_digest[i]) != 0)
            continue;
        struct placement now = *p;
        int config = find_config(&in->table, p->config);
        for (int t = 0; t < in->tiers.n && config >= 0; t++) {
            now.tier = t;
            if (manifest_operation(p, &in->previous.tiers, &now, &in->tiers) == OP_KEEP)
                in->before[i] = (struct plan_placement){ config, t };
        }
    }
}

static int read_previous(struct plan_input *in, const struct plan_files *files, struct err *err)
{
    if (!files->previous)
        return 0;
    if (manifest_read(&in->previous, files->previous, err))
        return err->code;
    if (strcmp(in->previous.model_digest, in->table.model_digest) != 0)
        return err_set(err, ERR_FORMAT, "'%s' was made for another model than '%s'", files->previous, files->table);
    find_kept(in);
    return 0;
}

int plan_input_read(struct plan_input *in, const struct plan_files *files, struct err *err)
{
    if ((files->tiers && tiers_read(&in->tiers, files->tiers, err)) ||
        table_read(&in->table, files->table, files->want, err))
        return err->code;
    if (in->table.n_dropped)
        log_warn("%zu cells that break a rule were left out", in->table.n_dropped);
    if (!in->table.quality_train)
        return err_set(err, ERR_FORMAT, "'%s' has no qualities yet: run evp-score on it", files->table);
    for (int t = 0; t < in->tiers.n; t++)
        in->capacity[t] = in->tiers.at[t].capacity;
    if (allocate(in, err) || read_access(in, files->access, err) ||
        read_rules(in, files->rules, files->want == TABLE_PLAN_LENIENT, err))
        return err->code;
    return read_previous(in, files, err);
}

void plan_input_release(struct plan_input *in)
{
    table_release(&in->table);
    tiers_release(&in->tiers);
    manifest_release(&in->previous);
    free(in->row);
    free(in->frequency);
    free(in->rule);
    free(in->pin);
    free(in->before);
    *in = (struct plan_input){ 0 };
}

/* ---- the problem --------------------------------------------------------- */

static size_t cell(const struct plan_input *in, int row, int config)
{
    return (size_t)row * (size_t)in->table.n_configs + (size_t)config;
}

double plan_ttft(const struct plan_input *in, int row, struct plan_placement c)
{
    const struct table *t = &in->table;

    if (c.tier == PLAN_RECOMPUTE)
        return ttft_recompute(t->prefill_s[row], t->question_s[row]);
    struct tier_speed speed = { in->tiers.at[c.tier].latency_s, in->tiers.at[c.tier].read_bytes_per_s };
    size_t k = cell(in, row, c.config);
    return ttft_stored(speed, t->cell_bytes[k], t->decompress_s[k], t->question_s[row]);
}

double plan_worth(const struct plan_input *in, int row, struct plan_placement c)
{
    double quality = c.tier == PLAN_RECOMPUTE ? 1 : in->table.quality_train[cell(in, row, c.config)];

    return utility(in->alpha, quality, plan_ttft(in, row, c), in->frequency[row]);
}

int64_t plan_written(const struct plan_input *in, int row, struct plan_placement c)
{
    const struct plan_placement *b = &in->before[row];

    if (c.tier == PLAN_RECOMPUTE || (b->config == c.config && b->tier == c.tier))
        return 0;
    return in->table.cell_bytes[cell(in, row, c.config)];
}

static double floor_of(const struct plan_input *in, int row)
{
    return fmax(in->rule[row].min_quality, in->min_quality);
}

/* A cell that was measured and is good enough. */
static bool is_allowed(int64_t bytes, double quality, double least)
{
    return bytes >= 0 && quality >= least; /* false for NAN */
}

/* Rows come in an order that the processor does not foresee, and a table does not fit its caches: it is told at once
 * what will be needed, instead of waiting for one piece after the other. */
static void fetch_soon(const void *at, size_t bytes)
{
    enum { CACHE_LINE = 64 };

    for (size_t k = 0; k < bytes; k += CACHE_LINE)
        __builtin_prefetch((const char *)at + k);
}

/* Asked for hundreds of millions of times: what a context or a tier has is looked up once. (V) and (V, T) */
static double candidates(const void *arg, int context, int64_t *bytes, double *out)
{
    const struct plan_input *in = arg;
    int row = in->row[context], pin = in->pin[row], n_tiers = in->tiers.n, n_configs = in->table.n_configs;
    const int64_t *size = in->table.cell_bytes + cell(in, row, 0);
    const double *quality = in->table.quality_train + cell(in, row, 0), least = floor_of(in, row);
    const double *decompress_s = in->table.decompress_s + cell(in, row, 0), question_s = in->table.question_s[row];
    const double alpha = in->alpha, frequency = in->frequency[row], move = in->move_cost + in->move_price;
    const struct plan_placement before = in->before[row];
    size_t row_bytes = (size_t)n_configs * sizeof(*size);

    fetch_soon(size, row_bytes);
    fetch_soon(quality, row_bytes);
    fetch_soon(decompress_s, row_bytes);
    double recompute = plan_worth(in, row, (struct plan_placement){ 0, PLAN_RECOMPUTE });
    for (int v = 0; v < n_configs; v++)
        bytes[v] = is_allowed(size[v], quality[v], least) ? size[v] : -1;
    for (int t = 0; t < n_tiers; t++) {
        struct tier_speed speed = { in->tiers.at[t].latency_s, in->tiers.at[t].read_bytes_per_s };
        bool open = pin == PIN_NONE || pin == t;
        for (int v = 0; v < n_configs; v++) {
            double ttft = ttft_stored(speed, size[v], decompress_s[v], question_s);
            double written = before.config == v && before.tier == t ? 0 : (double)size[v];
            out[v * n_tiers + t] = open ? utility(alpha, quality[v], ttft, frequency) - move * written : (double)NAN;
        }
    }
    return pin >= 0 ? utility_unpinned(recompute) : recompute;
}

struct plan_problem plan_input_problem(const struct plan_input *in)
{
    return (
        struct plan_problem){ in->table.n_contexts, in->table.n_configs, in->tiers.n, in->capacity, candidates, in };
}

/* ---- rules that cannot be kept -------------------------------------------- */

int plan_check_rules(const struct plan_input *in, struct err *err)
{
    for (int row = 0; row < in->table.n_contexts; row++) {
        double best = -1;
        bool allowed = in->pin[row] < 0; /* recomputing is always good enough */
        for (int v = 0; v < in->table.n_configs && !allowed; v++) {
            double quality = in->table.quality_train[cell(in, row, v)];
            int64_t bytes = in->table.cell_bytes[cell(in, row, v)];
            if (bytes < 0 || bytes > in->capacity[in->pin[row]] || isnan(quality))
                continue;
            best = fmax(best, quality);
            allowed = is_allowed(bytes, quality, floor_of(in, row));
        }
        if (allowed)
            continue;
        if (best < 0)
            return err_set(err, ERR_FAIL, "context '%s' is pinned to tier '%s', where no form of it fits",
                           in->table.context_id[row], in->tiers.at[in->pin[row]].name);
        return err_set(err, ERR_FAIL, "context '%s' cannot have quality %.4g on tier '%s': the best there is %.4g",
                       in->table.context_id[row], floor_of(in, row), in->tiers.at[in->pin[row]].name, best);
    }
    return 0;
}

int plan_check_pins(const struct plan_input *in, const struct plan *plan, struct err *err)
{
    for (int i = 0; i < plan->n_contexts; i++) {
        int pin = in->pin[in->row[i]];
        if (pin < 0 || plan->placement[i].tier == pin)
            continue;
        return err_set(err, ERR_FAIL, "what is pinned to tier '%s' does not fit there: context '%s' is left over",
                       in->tiers.at[pin].name, in->table.context_id[in->row[i]]);
    }
    return 0;
}

/* ---- a cap on what is written ----------------------------------------------- */

enum { COST_STEPS = 40 };

static double written_by(const struct plan_input *in, const struct plan *plan)
{
    double bytes = 0;

    for (int i = 0; i < plan->n_contexts; i++)
        bytes += (double)plan_written(in, in->row[i], plan->placement[i]);
    return bytes;
}

/* The cap is one more price: for a price m per byte written, bound(m) + m * most bounds every plan that writes no
 * more. Bisection finds the least price that keeps to the cap. */
int plan_within_moves(struct plan *plan, struct plan_input *in, enum plan_solver solver,
                      const struct plan_effort *effort, struct err *err)
{
    double low = 0, high = 0, most = (double)in->max_move;
    struct plan best = { 0 };

    for (int k = 0; k < COST_STEPS && (high == 0 || high - low > 1e-3 * high); k++) {
        struct plan_problem problem = plan_input_problem(in);
        struct plan trial;
        if (plan_solve(&trial, &problem, solver, effort, err)) {
            plan_release(&best);
            return err->code;
        }
        if (written_by(in, &trial) <= most) {
            plan_release(&best);
            best = trial;
            high = in->move_price;
            if (k == 0)
                break;
        } else {
            plan_release(&trial);
            low = in->move_price;
        }
        in->move_price = high > 0 ? (low + high) / 2 : fmax(8 * low, 1e-12);
    }
    if (!best.placement)
        return err_set(err, ERR_FAIL, "no plan writes as little as --max-move allows");
    in->move_price = high;
    best.upper_bound += high * most;
    best.objective += high * written_by(in, &best);
    *plan = best;
    return 0;
}

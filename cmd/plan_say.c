/* plan_say.c - one line per fact; text_bytes() and text_seconds() choose the units. */
#include "cmd/plan_say.h"

#include "base/log.h"
#include "base/parse.h"
#include "cmd/plan_explain.h"
#include "cmd/summary.h"
#include "formats/outcome.h"

#include <math.h>
#include <stdio.h>

void plan_say_left_out(const struct placement_left_out *left_out)
{
    if (left_out->predictions)
        log_warn("the table has no predictions, which evp-score makes: planning with raw means (--raw)");
    if (left_out->accesses_unknown)
        log_warn("%lld of %lld accesses are to contexts that the table does not have",
                 (long long)left_out->accesses_unknown, (long long)left_out->accesses);
    if (left_out->twins)
        log_info("%lld contexts have the tokens of another one, which has their uses, and are not stored",
                 (long long)left_out->twins);
    if (left_out->rules_unknown)
        log_warn("%lld rules are for contexts that the table does not have", (long long)left_out->rules_unknown);
}

/* "new": the context was not stored, or not in a variant that could stay. */
static void say_moves(const struct placement_plan *p)
{
    const struct tiers *tiers = &p->in->tiers;
    struct placement_moves moves;
    char text[TEXT_SHORT];

    placement_moves(p, &moves);
    for (int from = -1; from < tiers->n; from++)
        for (int to = 0; to < tiers->n; to++)
            if (moves.at[from + 1][to].n)
                log_info("write %-12s -> %-12s %d contexts, %s", from < 0 ? "new" : tiers->at[from].name,
                         tiers->at[to].name, moves.at[from + 1][to].n, text_bytes(text, moves.at[from + 1][to].bytes));
}

/* Is the night's work worth it? */
static void say_bill(const struct placement_bill *b)
{
    char prefills[TEXT_SHORT], writes[TEXT_SHORT], saves[TEXT_SHORT];

    if (b->takes.gpu_s + b->takes.tier_s > 0)
        log_info("packing %d contexts takes %s of a GPU and %s of writing; what is stored saves %s of TTFT in the uses "
                 "that the plan expects",
                 b->n_packed, text_seconds(prefills, b->takes.gpu_s), text_seconds(writes, b->takes.tier_s),
                 text_seconds(saves, b->saves_s));
}

static void say_tier(const struct placement_plan *p, int tier)
{
    const struct placement_input *in = p->in;
    char fill[TEXT_SHORT], capacity[TEXT_SHORT], price[TEXT_SHORT];
    int n = 0;

    for (int i = 0; i < p->plan.n_contexts; i++)
        n += p->plan.placement[i].tier == tier;
    if (tier == PLAN_RECOMPUTE) {
        log_info("tier %-12s %d contexts", "recompute", n);
        return;
    }
    const char *pool = in->tiers.at[tier].pool;
    log_info("tier %-12s %d contexts, %s of %s%s%s, price %s per GiB", in->tiers.at[tier].name, n,
             text_bytes(fill, (double)p->plan.fill[tier]),
             in->capacity[tier] == INT64_MAX ? "unlimited" : text_bytes(capacity, (double)in->capacity[tier]),
             *pool ? " of pool " : "", pool, plan_text_price(price, p->plan.price[tier]));
}

/* Contexts that find a prefix stored. */
static void say_served(const struct placement_plan *p, const struct placement_bill *bill)
{
    double uses = 0;

    for (int i = 0; i < p->in->table.n_contexts; i++)
        uses += p->in->frequency[i];
    if (bill->n_served > 0)
        log_info("%d of these contexts, with %.1f %% of the uses, begin with what is stored, and only compute the rest",
                 bill->n_served, 100 * bill->uses_served / uses);
}

/* What --rate found. */
static void say_load(const struct placement_plan *p)
{
    const struct placement_input *in = p->in;
    const struct manifest_load *l = &in->load;
    char wait[TEXT_SHORT];

    if (!(l->rate > 0))
        return;
    if (isfinite(l->wait_s))
        log_info("load %g requests per second: %lld GPU%s busy for %.0f %% of the time, a request waits %s on average",
                 l->rate, (long long)l->gpus, l->gpus > 1 ? "s" : "", 100 * l->gpu_use, text_seconds(wait, l->wait_s));
    else
        log_warn("%g requests per second need %.0f %% of the time of %lld GPU%s under the plan that needs least: the "
                 "queue grows",
                 l->rate, 100 * l->gpu_use, (long long)l->gpus, l->gpus > 1 ? "s" : "");
    if (in->prefixes.n > 0)
        log_info("load: contexts begin with each other, so the plan does not weigh what their requests wait");
    for (int t = 0; t < in->tiers.n; t++)
        log_info("load %-12s %.3g %% of its bandwidth", in->tiers.at[t].name, 100 * l->tier_use[t]);
}

/* Of all requests that are expected, waits included. */
static double ttft_of_all(const struct placement_plan *p, const struct manifest *m)
{
    return placement_mean_of_all(p->in, m->total[0].ttft_s, p->in->newcomers.gpu_s) + p->in->load.wait_s;
}

static double share_of_newcomers(const struct placement_plan *p)
{
    return placement_mean_of_all(p->in, 0, 1);
}

static void say_all(const struct placement_plan *p, const struct manifest *m)
{
    double all_s = ttft_of_all(p, m), share = share_of_newcomers(p);
    char all[TEXT_SHORT], known[TEXT_SHORT];

    if (share > 0)
        log_info("mean over all requests: TTFT %s, quality %.3f; over the %.1f %% to contexts that the logs know: %s",
                 isfinite(all_s) ? text_seconds(all, all_s) : "grows",
                 placement_mean_of_all(p->in, m->total[0].quality, 1), 100 * (1 - share),
                 isfinite(all_s) ? text_seconds(known, m->total[0].ttft_s + p->in->load.wait_s) : "grows");
}

void plan_say_brought(const struct placement_brought *b, const struct access_log *log)
{
    struct json_out *w = summary_json();

    json_begin(w, NULL, '{');
    json_put_real(w, "later_uses", b->uses);
    json_put_real(w, "promised", b->promised);
    json_put_real(w, "brought", b->brought);
    json_end(w, '}');
    log_info("later log: %.6g uses of contexts of the table; %lld of its %lld rows are about others", b->uses,
             (long long)log->unknown, (long long)log->rows);
    log_info("later log: the plan brings %.6g more utility than recomputing everything; it promises %.6g", b->brought,
             b->promised);
}

void plan_say_raw(const struct placement_plan *p, const struct placement_raw *raw)
{
    log_info("planned with predicted qualities: a plan from raw means promises utility %.4f and is predicted to bring "
             "%.4f, %.4f less than this plan",
             raw->promised, raw->brought, p->plan.objective - raw->brought);
}

/* The mean share of facts that answers keep, as predicted, and its error; NAN: not known for a context in use. */
static double mean_facts(const struct placement_plan *p, double *error)
{
    const struct table *t = &p->in->table;
    double kept = 0, variance = 0, uses = 0;

    for (int i = 0; i < p->plan.n_contexts; i++) {
        int row = p->in->row[i];
        struct plan_placement c = p->plan.placement[i];
        double weight = p->in->frequency[row] / OUTCOME_UNIT;
        bool plain = c.tier == PLAN_RECOMPUTE || c.config == 0;
        size_t cell = table_cell(t, row, c.config);
        if (!(weight > 0))
            continue;
        uses += weight;
        kept += weight * (plain ? 1 : t->predicted_facts ? (double)t->predicted_facts[cell] : (double)NAN);
        double sd = plain || !t->predicted_facts_sd ? 0 : weight * (double)t->predicted_facts_sd[cell];
        variance += sd * sd;
    }
    *error = sqrt(variance) / uses;
    return kept / uses;
}

void plan_say_json(const struct placement_plan *p, const struct manifest *m, const struct placement_bill *bill)
{
    struct json_out *w = summary_json();
    double facts_error, facts = mean_facts(p, &facts_error);

    json_begin(w, NULL, '{');
    json_put_real(w, "alpha", m->alpha);
    json_put_int(w, "contexts", p->plan.n_contexts);
    json_put_real(w, "utility", m->objective);
    json_put_real(w, "upper_bound", m->upper_bound);
    json_put_real(w, "gap", m->gap);
    json_put_real(w, "gain_gap", m->gain_gap);
    json_put_bool(w, "optimal", m->optimal);
    json_put_real(w, "ttft_s", m->total[0].ttft_s + m->total[0].wait_s);
    json_put_real(w, "ttft_all_s", ttft_of_all(p, m));
    json_put_real(w, "new_share", share_of_newcomers(p));
    if (m->slo_weight > 0)
        json_put_real(w, "late_s", placement_lateness(p));
    json_put_real(w, "quality", m->total[0].quality);
    json_put_real(w, "quality_error", m->total[0].quality_error);
    json_put_real(w, "quality_test", m->total[0].quality_test);
    json_put_real(w, "quality_tested", m->total[0].quality_tested);
    json_put_real(w, "quality_test_error", m->total[0].quality_test_error);
    json_put_int(w, "compressed", m->total[0].n_compressed);
    json_put_int(w, "tested", m->total[0].n_tested);
    json_put_real(w, "packing_gpu_s", bill->takes.gpu_s);
    json_put_real(w, "packing_tier_s", bill->takes.tier_s);
    json_put_real(w, "saves_s", bill->saves_s);
    json_put_int(w, "served_by_others", bill->n_served);
    json_put_real(w, "facts", facts);
    json_put_real(w, "facts_error", facts_error);
    json_begin(w, "tiers", '[');
    for (int t = 0; t < p->in->tiers.n; t++) {
        json_begin(w, NULL, '{');
        json_put_text(w, "name", p->in->tiers.at[t].name);
        json_put_int(w, "bytes", p->plan.fill[t]);
        json_end(w, '}');
    }
    json_end(w, ']');
    json_end(w, '}');
}

/* A message if one variant for all contexts does nearly as well as the plan. */
static void say_single(const struct manifest *m)
{
    const struct manifest_total *plan = &m->total[0], *recompute = &m->total[1 + BASELINE_RECOMPUTE];
    const struct manifest_total *single = &m->total[1 + BASELINE_SINGLE];
    double gain = plan->utility - recompute->utility;

    if (m->n_totals == 1 + BASELINE_COUNT && m->predicted && gain > 0 && plan->utility - single->utility < 0.01 * gain)
        log_info("%s does almost as well: these answers hardly tell contexts apart", single->name);
}

/* "0.969 ± 0.020"; "-" for an unknown mean, and without an unknown error. */
static const char *text_mean(char out[TEXT_SHORT], double mean, double error)
{
    int n = snprintf(out, TEXT_SHORT, isnan(mean) ? "-" : "%.3f", mean);

    if (!isnan(mean) && !isnan(error))
        snprintf(out + n, TEXT_SHORT - (size_t)n, " ± %.3f", error);
    return out;
}

enum { QUALITY_TEXT = 3 * TEXT_SHORT + 64 };

/* Nothing is called held out unless every compressed context has test answers. */
static const char *text_quality(char out[QUALITY_TEXT], const struct manifest_total *t)
{
    char mean[TEXT_SHORT], test[TEXT_SHORT];
    int n = snprintf(out, QUALITY_TEXT, "quality %s", text_mean(mean, t->quality, t->quality_error));
    char *end = out + n;
    size_t left = QUALITY_TEXT - (size_t)n;

    if (t->n_compressed == 0)
        snprintf(out, QUALITY_TEXT, "quality %s", text_mean(mean, t->quality, (double)NAN));
    else if (t->n_tested == t->n_compressed)
        snprintf(end, left, ", held out %s", text_mean(test, t->quality_test, t->quality_test_error));
    else if (t->n_tested > 0)
        snprintf(end, left, ", tested %s on %d of %d compressed contexts",
                 text_mean(test, t->quality_tested, t->quality_test_error), t->n_tested, t->n_compressed);
    else
        snprintf(end, left, ", not tested");
    return out;
}

static void say_facts(const struct placement_plan *p)
{
    char text[TEXT_SHORT];
    double error, facts = mean_facts(p, &error);

    if (!isnan(facts))
        log_info("of the facts in answers of the uncompressed caches this plan keeps %s, as predicted",
                 text_mean(text, facts, error));
}

static void say_late(const struct placement_plan *p)
{
    double late_s = placement_lateness(p);
    char late[TEXT_SHORT], slo[TEXT_SHORT];

    if (!isnan(late_s))
        log_info("expected lateness of an access: %s beyond the promised %s", text_seconds(late, late_s),
                 text_seconds(slo, p->in->slo_ttft_s));
}

void plan_say(const struct placement_plan *p, const struct manifest *m, const struct placement_bill *bill)
{
    char ttft[TEXT_SHORT], quality[QUALITY_TEXT], per_use[TEXT_SHORT];
    double ttft_s;

    for (int i = 0; i < m->n_totals; i++) {
        const struct manifest_total *t = &m->total[i];
        ttft_s = t->ttft_s + t->wait_s;
        log_info("%-40s utility %10.4f, %s per use  TTFT %9s  %s", t->name, t->utility,
                 plan_text_per_use(per_use, p, t->utility),
                 isfinite(ttft_s) || isnan(ttft_s) ? text_seconds(ttft, ttft_s) : "grows", text_quality(quality, t));
    }
    say_all(p, m);
    plan_explain_quality(p);
    say_facts(p);
    plan_explain_recompute(p);
    if (m->slo_weight > 0)
        say_late(p);
    for (int t = 0; t < p->in->tiers.n; t++)
        say_tier(p, t);
    say_tier(p, PLAN_RECOMPUTE);
    say_served(p, bill);
    say_load(p);
    if (p->in->previous.n)
        say_moves(p);
    say_bill(bill);
    plan_explain_gap(m);
    plan_explain_fit(p);
    say_single(m);
}

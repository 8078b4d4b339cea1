/* policy_drift.c - night's plan, and contexts whose answers are worse than predicted are profiled again (EvicPress,
 * section 4.3). "drift:0.1": worse by more than 0.1; without a number 0.3, as in the paper.
 *
 * The mean similarity of the last NEWEST answers from the variant where a context is, is compared with the quality
 * predicted for it. If it is too low, the context waits for an idle GPU, which prefills it and answers the questions of
 * these requests under every config. After each config requests have their turns. Then these answers take the place of
 * those of the profile before, the context's qualities are predicted anew (planner/belief.h), and everything is planned
 * again, as the next night would. Requests that do not count are not looked at.
 *
 * An answer takes its question's prefill twice: it has about as many tokens as the question, and all answers of a
 * config are decoded together, so that a token costs what it costs in a prefill. How good an answer is, is known for
 * nothing.
 */
#include "base/parse.h"
#include "planner/belief.h"
#include "replay/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NEWEST = 8 };

struct recent {
    int32_t question[NEWEST]; // a ring
    int32_t next;             // its oldest
    int32_t n;                // answered from `config`
    int32_t config;
    bool waits; // to be profiled
};

struct drift_state {
    double threshold;
    struct plan_placement *at;     // (C by row)
    struct plan_placement *before; // (C by row) the same, as planning wants it
    struct recent *recent;         // (C by row)
    double *quality;               // (C, V) to plan with
    double *mean, *std; // (C, V) of the answers to the questions of the last profile; std 0: of fewer than two
    int32_t *n;         // (C, V)
    int32_t *waiting;   // (C) rows, a ring
    int first, n_waiting;
    /* the profile of the first that waits */
    int32_t asked[NEWEST];
    int config; // whose answers come next
};

static double similarity(const struct table *t, int question, int config)
{
    double x = (double)t->similarity[table_answer(t, question, config)];

    return isnan(x) ? x : fmin(fmax(x, 0), 1);
}

/* ---- profiles --------------------------------------------------------------- */

static void add_answer(struct drift_state *s, const struct table *t, int question, int config)
{
    size_t cell = table_cell(t, (int)t->question_context[question], config);
    double x = similarity(t, question, config), off = x - s->mean[cell];

    if (isnan(x))
        return;
    int n = ++s->n[cell];
    s->mean[cell] += off / n;
    if (n > 1)
        s->std[cell] = sqrt(((n - 2) * s->std[cell] * s->std[cell] + off * (x - s->mean[cell])) / (n - 1));
}

static void measure_train(struct drift_state *s, const struct table *t)
{
    for (int q = 0; q < t->n_questions; q++)
        for (int v = 0; v < t->n_configs && strcmp(t->question_split[q], "train") == 0; v++)
            add_answer(s, t, q, v);
}

static void measure_again(struct drift_state *s, const struct table *t, int row)
{
    for (int v = 0; v < t->n_configs; v++) {
        size_t cell = table_cell(t, row, v);
        s->mean[cell] = s->std[cell] = s->n[cell] = 0;
        for (int k = 0; k < NEWEST; k++)
            add_answer(s, t, s->asked[k], v);
    }
}

/* Of the answers of its last profile, as far as it has some. */
static int predict(struct policy *p, int row, struct err *err)
{
    struct drift_state *s = p->state;
    const struct table *t = &p->in->table;
    const struct belief_cells cells = { t->n_contexts, t->n_configs, s->mean, s->std, s->n };
    struct belief b;

    if (belief_fit(&b, &cells, err))
        return err->code;
    for (int v = 1; v < t->n_configs; v++) {
        size_t cell = table_cell(t, row, v);
        if (s->n[cell] > 0)
            s->quality[cell] = belief_of(&b, v, s->mean[cell], s->n[cell]).quality;
    }
    belief_release(&b);
    return 0;
}

/* ---- the plan --------------------------------------------------------------- */

/* Plans for the requests that do not count. What comes to be stored, or in another way, is written. */
static int place(struct policy *p, struct sim_bytes *written, struct err *err)
{
    const struct drift_state *s = p->state;
    const struct table *t = &p->in->table;
    struct placement_plan plan;

    if (placement_solve(&plan, p->in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, err))
        return err->code;
    for (int c = 0; c < t->n_contexts; c++) {
        int row = p->in->row[c];
        const struct plan_placement to = plan.plan.placement[c], from = s->at[row];
        s->at[row] = to;
        s->before[row] = (struct plan_placement){ to.tier == PLAN_RECOMPUTE ? -1 : to.config, to.tier };
        if (to.tier == PLAN_RECOMPUTE || (to.tier == from.tier && to.config == from.config))
            continue;
        written->at[to.tier] += (double)t->cell_bytes[table_cell(t, row, to.config)];
        written->n++;
    }
    plan_release(&plan.plan);
    return 0;
}

static struct held find(const struct policy *p, int row)
{
    const struct drift_state *s = p->state;

    return world_all(p->world, row, s->at[row]);
}

/* ---- what answers are like -------------------------------------------------- */

static bool is_worse(const struct drift_state *s, const struct table *t, int row)
{
    const struct recent *r = &s->recent[row];
    double sum = 0;

    for (int k = 0; k < NEWEST; k++)
        sum += similarity(t, r->question[k], r->config);
    return s->quality[table_cell(t, row, r->config)] - sum / NEWEST > s->threshold;
}

static int finish(struct policy *p, int request, struct sim_bytes *written, struct err *err)
{
    struct drift_state *s = p->state;
    const struct table *t = &p->in->table;
    int row = p->world->path[p->world->first[request]], question = p->world->question[request];
    const struct plan_placement at = s->at[row];
    struct recent *r = &s->recent[row];

    (void)written, (void)err;
    if (request < p->world->warm || at.config == 0 || question < 0 || isnan(similarity(t, question, at.config)))
        return 0;
    r->n = r->config == at.config ? r->n + 1 : 1;
    r->config = at.config;
    r->question[r->next] = question;
    r->next = (r->next + 1) % NEWEST;
    if (r->waits || r->n < NEWEST || !is_worse(s, t, row))
        return 0;
    r->waits = true;
    s->waiting[(s->first + s->n_waiting++) % t->n_contexts] = row;
    return 0;
}

/* ---- idle GPUs -------------------------------------------------------------- */

static double idle(struct policy *p)
{
    struct drift_state *s = p->state;
    const struct table *t = &p->in->table;

    if (s->n_waiting == 0)
        return -1;
    int row = s->waiting[s->first];
    double first_s = s->config ? t->compress_s[table_cell(t, row, s->config)] : t->prefill_s[row];
    double work_s = NEWEST * 2 * t->question_s[row] + (isnan(first_s) ? 0 : first_s);
    if (s->config == 0)
        memcpy(s->asked, s->recent[row].question, sizeof(s->asked));
    p->profiling_s += work_s;
    return work_s;
}

static int worked(struct policy *p, struct sim_bytes *written, struct err *err)
{
    struct drift_state *s = p->state;
    const struct table *t = &p->in->table;
    int row = s->waiting[s->first];

    if (++s->config < t->n_configs)
        return 0;
    s->config = 0;
    s->first = (s->first + 1) % t->n_contexts;
    s->n_waiting--;
    s->recent[row].waits = false;
    s->recent[row].n = 0;
    p->profiled++;
    measure_again(s, t, row);
    return predict(p, row, err) ? err->code : place(p, written, err);
}

/* ---- opening ---------------------------------------------------------------- */

static int take_options(struct policy *p, const char *options, struct err *err)
{
    struct drift_state *s = p->state;

    s->threshold = 0.3;
    if (*options && (*options != ':' || !parse_real(options + 1, &s->threshold) || !(s->threshold >= 0)))
        return err_set(err, ERR_USAGE, "is drift:X, a difference of qualities of at least 0");
    if (p->world->block_tokens || !p->in->table.similarity)
        return err_set(err, ERR_USAGE, "needs a table with answers");
    if (p->world->warm == 0)
        return err_set(err, ERR_USAGE, "there are no requests to plan for: they are those that --warm leaves out");
    return 0;
}

static int open_drift(struct policy *p, const char *options, struct err *err)
{
    const struct table *t = &p->in->table;
    size_t n_rows = (size_t)t->n_contexts + 1, n_cells = table_n_cells(t) + 1;
    struct drift_state *s = calloc(1, sizeof(*s));

    p->state = s;
    if (!s)
        return err_nomem(err);
    if (take_options(p, options, err))
        return err->code;
    s->at = calloc(n_rows, sizeof(*s->at));
    s->before = calloc(n_rows, sizeof(*s->before));
    for (size_t row = 0; s->before && row < n_rows; row++)
        s->before[row] = (struct plan_placement){ -1, PLAN_RECOMPUTE };
    s->recent = calloc(n_rows, sizeof(*s->recent));
    s->waiting = calloc(n_rows, sizeof(*s->waiting));
    s->quality = calloc(n_cells, sizeof(*s->quality));
    s->mean = calloc(n_cells, sizeof(*s->mean));
    s->std = calloc(n_cells, sizeof(*s->std));
    s->n = calloc(n_cells, sizeof(*s->n));
    if (!s->at || !s->before || !s->recent || !s->waiting || !s->quality || !s->mean || !s->std || !s->n)
        return err_nomem(err);
    memcpy(s->quality, p->in->quality, table_n_cells(t) * sizeof(*s->quality));
    p->in->quality = s->quality;
    p->idle = idle;
    p->worked = worked;
    measure_train(s, t);
    if (world_expect(p->world, 0, p->world->warm, p->in, err))
        return err->code;
    p->in->before = s->before;
    return place(p, &(struct sim_bytes){ 0 }, err);
}

static void close_drift(struct policy *p)
{
    struct drift_state *s = p->state;

    if (!s)
        return;
    p->in->quality = p->world->in->quality;
    p->in->before = p->world->in->before;
    free(s->at);
    free(s->before);
    free(s->recent);
    free(s->waiting);
    free(s->quality);
    free(s->mean);
    free(s->std);
    free(s->n);
    free(s);
}

const struct policy_kind policy_drift = { "drift", "[:X]", open_drift, find, finish, close_drift };

/* aim_list.c - chooses train questions and writes their list.
 *
 * Without a table and a prior the list is the pilot: a few questions over all configs of a few contexts, drawn by a
 * checksum of their ids. Otherwise planner/aim.h chooses, at the prices of the plan that evp-plan would make now.
 * --audit draws contexts in the same way, with another checksum, and asks all their questions.
 */
#include "aiming/aim_job.h"

#include "planner/normal.h"
#include "profiler/run/unvisited.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PILOT_CONTEXTS = 8, PILOT_QUESTIONS = 8 };              // for up to PILOT_MANY contexts
enum { PILOT_MANY = 100, PILOT_MORE = 16, PILOT_DEEPER = 12 }; // for more contexts
static const double default_share = 0.04;                      // the budget of a list without --budget
static const double worthless = 1e-3; // share of (gain / full cost): requests that bring less per cost are left out

/* The request for one context: more questions over some configs. */
struct asked {
    int context, n; // index in CONTEXTS; number of questions, from the first that a config was not asked
    const uint16_t *config;
    int n_configs;
};

struct writing {
    struct aim_job *j;
    struct rows_out out;
    int *known_question, *known_config; // (questions), (V): rows in TABLE, or -1
    int *question;                      // (questions) the next ones for a config
    int *before;                        // (questions) those for the previous config
    bool *wanted;                       // (questions) asked for any config of this context
    struct aim_cost cost;
};

static int row_of(const struct aim_job *j, int context)
{
    const char *id = j->contexts.at[context].id;

    return map_find(&j->table.ids, id, strlen(id));
}

/* ---- writing ------------------------------------------------------------------------- */

static bool is_answered(const struct writing *w, int question, int config)
{
    const struct table *t = &w->j->known;
    int q = w->known_question[question], v = w->known_config[config];

    return q >= 0 && v >= 0 && t->answer_n_tokens[table_answer(t, q, v)] >= 0;
}

/* Finds the next n questions that a config was not asked. Returns their number. */
static int next_questions(const struct writing *w, const struct asked *a, int config, int *out)
{
    const struct aim_job *j = w->j;
    int n = 0;

    for (int i = 0; i < j->n_train[a->context] && n < a->n; i++)
        if (!is_answered(w, j->train[a->context][i], config))
            out[n++] = j->train[a->context][i];
    return n;
}

/* Writes a row for configs range[0] .. range[1] - 1, which are asked the same n questions. */
static int put_row(struct writing *w, const struct asked *a, const int range[2], int n, struct err *err)
{
    const struct aim_job *j = w->j;
    struct json_out row = rows_begin(&w->out);

    json_put_text(&row, "context", j->contexts.at[a->context].id);
    json_begin(&row, "configs", '[');
    for (int k = range[0]; k < range[1]; k++)
        json_put_text(&row, NULL, j->table.config_name[a->config[k]]);
    json_end(&row, ']');
    json_begin(&row, "questions", '[');
    for (int i = 0; i < n; i++) {
        json_put_text(&row, NULL, j->questions.at[w->before[i]].id);
        w->wanted[w->before[i]] = true;
    }
    json_end(&row, ']');
    w->cost.answers += (int64_t)n * (range[1] - range[0]);
    return rows_put(&w->out, &row, err);
}

/* Writes the rows of one context; neighbouring configs with the same questions share a row. */
static int put_context(struct writing *w, const struct asked *a, struct err *err)
{
    const struct aim_job *j = w->j;
    int64_t before = w->cost.answers;
    int first = 0, n = 0, code = 0;

    for (int k = 0; k <= a->n_configs && !code; k++) {
        int more = k < a->n_configs ? next_questions(w, a, a->config[k], w->question) : -1;
        if (more == n && memcmp(w->question, w->before, (size_t)n * sizeof(int)) == 0)
            continue;
        if (n > 0)
            code = put_row(w, a, (const int[]){ first, k }, n, err);
        first = k;
        n = more;
        if (more > 0)
            memcpy(w->before, w->question, (size_t)more * sizeof(int));
    }
    for (int i = 0; i < j->n_train[a->context]; i++) {
        int q = j->train[a->context][i];
        w->cost.answers += w->wanted[q] && !is_answered(w, q, 0);
        w->wanted[q] = false;
    }
    if (w->cost.answers > before) {
        w->cost.contexts++;
        w->cost.tokens += (double)j->table.n_tokens[row_of(j, a->context)] +
                          (double)(w->cost.answers - before) * j->opt->answer_tokens;
    }
    return code;
}

static void put_header(const void *arg, struct json_out *w)
{
    const struct aim_job *j = arg;

    json_put_text(w, "split", "train");
    if (*j->known.digest)
        json_put_text(w, "table_digest", j->known.digest);
    json_begin(w, "configs", '[');
    for (int v = 0; v < j->table.n_configs; v++)
        json_put_text(w, NULL, j->table.config_name[v]);
    json_end(w, ']');
}

static void writing_release(struct writing *w)
{
    rows_abort(&w->out);
    free(w->known_question);
    free(w->known_config);
    free(w->question);
    free(w->before);
    free(w->wanted);
}

static int writing_init(struct writing *w, struct aim_job *j, struct err *err)
{
    size_t n = (size_t)j->questions.n + 1;

    *w = (struct writing){ .j = j,
                           .known_question = calloc(n, sizeof(int)),
                           .known_config = calloc((size_t)j->table.n_configs + 1, sizeof(int)),
                           .question = calloc(n, sizeof(int)),
                           .before = calloc(n, sizeof(int)),
                           .wanted = calloc(n, sizeof(*w->wanted)) };
    if (!w->known_question || !w->known_config || !w->question || !w->before || !w->wanted)
        return err_nomem(err);
    for (int q = 0; q < j->questions.n; q++) {
        const char *id = j->questions.at[q].id;
        w->known_question[q] = map_find(&j->names.questions, id, strlen(id));
    }
    for (int v = 0; v < j->table.n_configs; v++)
        w->known_config[v] = table_find_config(&j->known, j->table.config_name[v]);
    return 0;
}

static int write_list(struct aim_job *j, struct aim_out *list, const struct asked *asked, int n, struct err *err)
{
    const struct json *const from[] = { j->contexts.header, j->questions.header };
    struct rows_made made = { .kind = "cells",
                              .tool = "evp-aim",
                              .args = j->opt->args,
                              .n_args = j->opt->n_args,
                              .from = from,
                              .n_from = 2,
                              .more = put_header,
                              .arg = j };
    struct writing w;
    int code = writing_init(&w, j, err);

    if (!code)
        code = rows_create(&w.out, list->path, &made, err);
    for (int i = 0; i < n && !code; i++)
        code = put_context(&w, &asked[i], err);
    if (!code)
        code = rows_finish(&w.out, err);
    writing_release(&w);
    list->cost = w.cost;
    return code;
}

/* ---- costs ------------------------------------------------------------------------------ */

struct aim_cost aim_full_cost(const struct aim_job *j)
{
    struct aim_cost cost = { 0 };

    for (int c = 0; c < j->contexts.n; c++) {
        int row = row_of(j, c);
        if (row < 0 || j->n_train[c] == 0)
            continue;
        cost.contexts++;
        cost.answers += (int64_t)j->n_train[c] * j->table.n_configs;
        cost.tokens += (double)j->table.n_tokens[row];
    }
    cost.tokens += (double)cost.answers * j->opt->answer_tokens;
    return cost;
}

/* The profiling machine's tokens of prefill per second; NAN: nothing was measured. */
static double tokens_per_s(const struct aim_job *j)
{
    double tokens = 0, seconds = 0;

    for (int c = 0; c < j->known.n_contexts; c++)
        if (table_is_measured(&j->known, c) && j->known.n_tokens[c] > 0 && !isnan(j->known.prefill_s[c])) {
            tokens += (double)j->known.n_tokens[c];
            seconds += j->known.prefill_s[c];
        }
    return seconds > 0 ? tokens / seconds : (double)NAN;
}

int aim_budget(const struct aim_job *j, const char *text, double *budget, struct err *err)
{
    char number[64];
    size_t n = strlen(text);
    double value;
    bool share = n > 0 && text[n - 1] == '%', good = n - share > 0 && n - share < sizeof(number);

    snprintf(number, sizeof(number), "%.*s", good ? (int)(n - share) : 0, text);
    if (!parse_real(number, &value) || !(value > 0) || (share && value > 100))
        return err_set(err, ERR_USAGE, "'--budget=%s' is neither a share like '12%%' nor a number of seconds", text);
    *budget = share ? value / 100 * aim_full_cost(j).tokens : value * tokens_per_s(j);
    if (isnan(*budget))
        return err_set(err, ERR_USAGE, "'--budget=%s': without a measured table a budget is a share, like '12%%'",
                       text);
    return 0;
}

/* ---- the pilot and the audit --------------------------------------------------------------- */

struct drawn {
    uint64_t key;
    int context;
};

static int by_key(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;

    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->context - y->context;
}

/* Lists the contexts that can be asked, sorted by a checksum of `salt` and id. Returns their number; -1 without
 * memory. */
static int draw(const struct aim_job *j, const char *salt, struct drawn *out)
{
    struct buf key = { 0 };
    int n = 0;

    for (int c = 0; c < j->contexts.n; c++) {
        if (row_of(j, c) < 0 || j->n_train[c] == 0)
            continue;
        buf_clear(&key);
        buf_printf(&key, "%s %s", salt, j->contexts.at[c].id);
        out[n++] = (struct drawn){ digest_xxh3(buf_str(&key), key.n), c };
    }
    bool failed = buf_failed(&key);
    buf_release(&key);
    qsort(out, (size_t)n, sizeof(*out), by_key);
    return failed ? -1 : n;
}

static double cost_in_full(const struct aim_job *j, int context, int n)
{
    int answers = (n < j->n_train[context] ? n : j->n_train[context]) * j->table.n_configs;

    return (double)j->table.n_tokens[row_of(j, context)] + (double)answers * j->opt->answer_tokens;
}

/* A sample of contexts, asked over all configs. */
struct sample {
    const char *salt; // of the draw
    int contexts, questions;
};

/* Lists the first contexts of a draw that the budget allows, but at least two. */
static int list_sample(struct aim_job *j, struct aim_out *out, const struct sample *s, struct err *err)
{
    size_t n = (size_t)j->contexts.n + 1, n_configs = (size_t)j->table.n_configs;
    struct drawn *drawn = calloc(n, sizeof(*drawn));
    struct asked *asked = calloc(n, sizeof(*asked));
    uint16_t *config = calloc(n_configs + 1, sizeof(*config));
    double spent = 0;
    int taken = 0, code = drawn && asked && config ? 0 : err_nomem(err);
    int found = code ? 0 : draw(j, s->salt, drawn);

    if (!code && found < 0)
        code = err_nomem(err);
    for (size_t v = 1; v < n_configs && !code; v++)
        config[v - 1] = (uint16_t)v;
    for (int i = 0; i < found && i < s->contexts && !code; i++) {
        spent += cost_in_full(j, drawn[i].context, s->questions);
        if (taken >= 2 && spent > out->budget)
            break;
        asked[taken++] = (struct asked){ drawn[i].context, s->questions, config, (int)n_configs - 1 };
    }
    if (!code)
        code = write_list(j, out, asked, taken, err);
    free(drawn);
    free(asked);
    free(config);
    return code;
}

static int list_pilot(struct aim_job *j, struct aim_out *out, struct err *err)
{
    bool many = j->contexts.n > PILOT_MANY;
    struct sample pilot = { "pilot", many ? PILOT_MORE : PILOT_CONTEXTS, many ? PILOT_DEEPER : PILOT_QUESTIONS };

    if (list_sample(j, out, &pilot, err))
        return err->code;
    out->dear_pilot = out->cost.tokens > out->budget;
    return 0;
}

/* ---- lists by predictions -------------------------------------------------------------------- */

/* The inputs of planner/aim.h. Arrays are by row of the planner's table. */
struct aiming {
    struct placement_plan plan;
    struct placement_aim aim;
    struct belief belief;
    double *visit;
    int *n_questions, *context; // context: index in CONTEXTS, or -1
};

static void aiming_release(struct aiming *a)
{
    plan_release(&a->plan.plan);
    free(a->visit);
    free(a->n_questions);
    free(a->context);
}

static int set_costs(struct aiming *a, const struct aim_job *j, const struct placement_input *in, struct err *err)
{
    size_t n = (size_t)in->table.n_contexts + 1;

    a->visit = calloc(n, sizeof(*a->visit));
    a->n_questions = calloc(n, sizeof(*a->n_questions));
    a->context = calloc(n, sizeof(*a->context));
    if (!a->visit || !a->n_questions || !a->context)
        return err_nomem(err);
    for (int row = 0; row < in->table.n_contexts; row++) {
        a->context[row] = map_find(&j->contexts.ids, in->table.context_id[row], strlen(in->table.context_id[row]));
        a->visit[row] = (double)in->table.n_tokens[row];
        a->n_questions[row] = a->context[row] < 0 ? 0 : j->n_train[a->context[row]];
    }
    return 0;
}

/* Solves for prices. *gain: the plan's gain over recomputing everything. */
static int plan_now(struct aiming *a, struct placement_input *in, double *gain, struct err *err)
{
    struct plan_effort effort = { 0 };

    if (placement_check_rules(in, err) || placement_solve(&a->plan, in, PLAN_OPTIMAL, &effort, err))
        return err->code;
    *gain = a->plan.plan.objective;
    for (int row = 0; row < in->table.n_contexts; row++)
        *gain -= placement_utility(in, row, (struct plan_placement){ 0, PLAN_RECOMPUTE });
    return 0;
}

static int write_requests(struct aim_job *j, struct aim_out *out, const struct aiming *a, const struct aim_list *list,
                          struct err *err)
{
    struct asked *asked = calloc((size_t)list->n + 1, sizeof(*asked));

    if (!asked)
        return err_nomem(err);
    for (int i = 0; i < list->n; i++) {
        const struct aim_request *r = &list->at[i];
        int row = a->aim.free.row[r->context];
        asked[i] = (struct asked){ a->context[row], r->n, list->configs.at + r->first, r->n_configs };
    }
    int code = write_list(j, out, asked, list->n, err);
    free(asked);
    return code;
}

/* Sets up the problem of planner/aim.h. */
static int pose(struct aiming *a, const struct aim_job *j, const struct placement_input *in, struct err *err)
{
    if (set_costs(a, j, in, err))
        return err->code;
    placement_aim_init(&a->aim, in, a->plan.plan.price);
    a->belief = (struct belief){ in->table.n_configs, in->table.belief_mean, in->table.belief_between,
                                 in->table.belief_within, NULL };
    a->aim.aim.belief = &a->belief;
    a->aim.visit = a->visit;
    a->aim.n_questions = a->n_questions;
    a->aim.answer = j->opt->answer_tokens;
    return 0;
}

static int list_by_belief(struct aim_job *j, struct aim_out *out, struct placement_input *in, struct err *err)
{
    struct aiming a = { 0 };
    struct aim_list list = { 0 };
    double gain = 0;

    if (plan_now(&a, in, &gain, err))
        return err->code;
    struct placement_bound bound = { a.plan.plan.price, a.plan.plan.objective, a.plan.plan.upper_bound };
    struct aim_budget budget = { out->budget, worthless * fmax(gain, 0) / aim_full_cost(j).tokens };
    int code = pose(&a, j, in, err);
    if (!code)
        code = placement_loss(in, &bound, &out->loss, err);
    if (!code && !(out->loss <= j->opt->until))
        code = aim_list_make(&list, &a.aim.aim, &budget, err);
    out->too_dear = !code && list.too_dear;
    if (!code)
        code = write_requests(j, out, &a, &list, err);
    aim_list_release(&list);
    aiming_release(&a);
    return code;
}

/* The planner takes the table over, but the list still needs its names. */
static int list_aimed(struct aim_job *j, struct aim_out *out, struct err *err)
{
    const struct aim_options *opt = j->opt;
    struct placement_input in = { .alpha = opt->alpha,
                                  .min_quality = opt->min_quality,
                                  .sure_z = normal_quantile(opt->sure),
                                  .max_move = INT64_MAX,
                                  .kind = QUALITY_PREDICTED };
    struct placement_files files = { .table = "the table",
                                     .tiers = opt->tiers,
                                     .access = opt->access.at,
                                     .n_access = opt->access.n,
                                     .rules = opt->rules,
                                     .want = TABLE_PLAN };

    if (!opt->tiers)
        return err_set(err, ERR_USAGE, "--tiers is missing");
    struct table names = j->table;
    int code = placement_input_take(&in, &j->table, &files, err);
    j->table = names; /* the same arrays: the job keeps them */
    if (!code)
        code = list_by_belief(j, out, &in, err);
    in.table = (struct table){ 0 };
    placement_input_release(&in);
    return code;
}

/* ---- every list ------------------------------------------------------------------------------- */

int aim_list(struct aim_job *j, struct aim_out *out, struct err *err)
{
    bool pilot = !j->known.n_contexts && !j->prior.n_configs;
    double full = aim_full_cost(j).tokens;

    out->loss = (double)NAN;
    if (full <= 0)
        return err_set(err, ERR_FORMAT, "no context has a train question that can be asked");
    if (out->budget < 0 && j->opt->budget && aim_budget(j, j->opt->budget, &out->budget, err))
        return err->code;
    if (out->budget < 0)
        out->budget = pilot ? HUGE_VAL : default_share * full;
    if (j->opt->audit) {
        out->budget = HUGE_VAL;
        return list_sample(j, out, &(struct sample){ "audit", j->opt->audit, INT_MAX }, err);
    }
    return pilot ? list_pilot(j, out, err) : list_aimed(j, out, err);
}

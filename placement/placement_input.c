/* placement_input.c - reads the inputs of a plan: tiers, table, accesses, rules, previous manifest. In this order,
 * because each refers to those before it. */
#include "placement/placement_internal.h"

#include "logs/access.h"
#include "profiler/score/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int allocate(struct placement_input *in, struct err *err)
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
    return manifest_order(in->row, (const char *const *)in->table.context_id, in->table.n_contexts, err);
}

int placement_find_allowed(struct placement_input *in, struct err *err)
{
    int n_configs = in->table.n_configs, n_tiers = in->tiers.n;
    bool all = true;

    for (int t = 0; t < n_tiers; t++)
        all &= in->tiers.at[t].n_configs == 0;
    if (all)
        return 0;
    in->allowed = calloc((size_t)n_configs * (size_t)n_tiers + 1, sizeof(*in->allowed));
    for (int v = 0; in->allowed && v < n_configs; v++)
        for (int t = 0; t < n_tiers; t++)
            in->allowed[v * n_tiers + t] = tier_allows(&in->tiers.at[t], in->table.config_name[v]);
    return in->allowed ? 0 : err_nomem(err);
}

/* Refuses a log of other contexts: a plan made from it would evict contexts that are used. */
static int check_match(const struct placement_input *in, const struct access_log *log, const char *path,
                       const char *table, struct err *err)
{
    int64_t known = log->rows - log->unknown;

    if (log->rows == 0)
        return 0; /* nothing was used */
    if (in->access_min_match > 0 && known == 0)
        return err_set(err, ERR_FORMAT,
                       "'%s': none of its %lld accesses is to a context of '%s': it is the log of something else", path,
                       (long long)log->rows, table);
    if ((double)known < in->access_min_match * (double)log->rows)
        return err_set(err, ERR_FORMAT,
                       "'%s': only %lld of its %lld accesses are to contexts of '%s', below --access-min-match=%g",
                       path, (long long)known, (long long)log->rows, table, in->access_min_match);
    return 0;
}

static int learn_rates(struct placement_input *in, const char *path, double unknown_uses, struct err *err)
{
    double *before = calloc((size_t)in->table.n_contexts + 1, sizeof(*before));
    struct access_log log;
    int code = before ? access_read(&log, path, &in->table.ids, before, err) : err_nomem(err);

    if (!code)
        placement_learn_rates(in, before, unknown_uses);
    free(before);
    return code;
}

static int read_access(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    double unknown_uses = 0;

    for (int i = 0; i < in->table.n_contexts; i++)
        in->frequency[i] = files->n_access ? 0 : 1;
    for (int k = 0; k < files->n_access; k++) {
        struct access_log log;
        if (access_read(&log, files->access[k], &in->table.ids, in->frequency, err) ||
            check_match(in, &log, files->access[k], files->table, err))
            return err->code;
        in->left_out.accesses += log.rows;
        in->left_out.accesses_unknown += log.unknown;
        unknown_uses += log.unknown_uses;
    }
    if (files->access_before && learn_rates(in, files->access_before, unknown_uses, err))
        return err->code;
    bool used = false;
    for (int i = 0; i < in->table.n_contexts; i++) {
        in->frequency[i] = fmax(in->frequency[i], in->access_floor);
        used |= in->frequency[i] > 0;
    }
    in->left_out.unused = files->n_access > 0 && !used;
    return 0;
}

static int read_rules(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    if (files->rules && rules_read(in->rule, files->rules, &in->table.ids, &in->left_out.rules_unknown, err))
        return err->code;
    for (int i = 0; i < in->table.n_contexts; i++) {
        const char *tier = in->rule[i].tier;
        if (!*tier)
            continue;
        int pin = tiers_find(&in->tiers, tier); /* -1 is PLAN_RECOMPUTE */
        if (pin < 0 && strcmp(tier, "recompute") != 0)
            return err_set(err, ERR_FORMAT, "'%s': context '%s' is pinned to unknown tier '%s'", files->rules,
                           in->table.context_id[i], tier);
        in->pin[i] = pin;
    }
    /* in the order of the ids, so that tables of the same contexts agree */
    const struct rules_in_order all = { in->rule, in->table.context_id, in->row, in->table.n_contexts };
    return rules_digest(&all, in->rules_digest, err);
}

/* A context can stay where the previous manifest has it if its tokens are the same, the table has the config, and
 * tiers.json has the tier. */
static void find_kept(struct placement_input *in)
{
    for (int i = 0; i < in->table.n_contexts; i++) {
        const struct placement *p = manifest_find(&in->previous, in->table.context_id[i]);
        struct cached was = manifest_cached(&in->previous.tiers, p), now = was;
        int config = was.tier ? table_find_config(&in->table, p->config) : -1;
        now.token_digest = in->table.context_token_digest[i];
        for (int t = 0; t < in->tiers.n && config >= 0; t++) {
            now.tier = &in->tiers.at[t];
            if (operation_between(&was, &now) == OP_KEEP)
                in->before[i] = (struct plan_placement){ config, t };
        }
    }
}

static int read_previous(struct placement_input *in, const struct placement_files *files, struct err *err)
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

/* Of two rows with the same tokens: the one that is pinned to a tier, or is in use, or can stay. */
static bool leads(const struct placement_input *in, int a, int b)
{
    if ((in->pin[a] >= 0) != (in->pin[b] >= 0))
        return in->pin[a] >= 0;
    if ((in->frequency[a] > 0) != (in->frequency[b] > 0))
        return in->frequency[a] > 0;
    return in->before[a].config >= 0 && in->before[b].config < 0;
}

/* Contexts with the same tokens are one: one of them has the uses of all, the others are not stored. */
static int unite_twins(struct placement_input *in, struct err *err)
{
    struct map tokens = { 0 };
    int *leader = calloc((size_t)in->table.n_contexts + 1, sizeof(*leader)), code = leader ? 0 : err_nomem(err);

    for (int i = 0; i < in->table.n_contexts && !code; i++) {
        int row = in->row[i];
        bool first = true;
        int k = map_add(&tokens, in->table.context_token_digest[row], DIGEST_HEX - 1, &first);
        if (k < 0)
            code = err_nomem(err);
        else if (first)
            leader[k] = row;
        if (first)
            continue;
        bool better = leads(in, row, leader[k]);
        int other = better ? leader[k] : row;
        leader[k] = better ? row : leader[k];
        in->frequency[leader[k]] += in->frequency[other];
        in->frequency[other] = 0;
        in->pin[other] = PLAN_RECOMPUTE;
        in->left_out.twins++;
    }
    map_release(&tokens);
    free(leader);
    return code;
}

/* 0: as far away as the answer to another question; 1: as near as a second answer of the uncompressed cache, or
 * nearer. */
static double as_same(double quality, double unrelated, double same)
{
    return isnan(quality) ? quality : fmin(fmax(score_kept(quality, unrelated, same), 0), 1);
}

/* Changes all qualities of the table to that scale. */
static int rescale(struct table *t, const char *path, struct err *err)
{
    const double least = 0.1; /* less says nothing: the mean of 30 answers is known to about 0.05 */
    double unrelated = score_unrelated(t), same = score_same_meaning(t);

    if (!(same - unrelated >= least))
        return err_set(
            err, ERR_FORMAT,
            isnan(same)
                ? "'%s' has no second answers of the uncompressed cache: profile with --temperature, score again"
                : "'%s': second answers of the uncompressed cache are no nearer to the first than other answers",
            path);
    for (size_t i = 0; i < table_n_cells(t); i++) {
        t->quality_train[i] = as_same(t->quality_train[i], unrelated, same);
        t->quality_test[i] = as_same(t->quality_test[i], unrelated, same);
        if (!t->predicted_quality)
            continue;
        t->predicted_quality[i] = as_same(t->predicted_quality[i], unrelated, same);
        t->predicted_sd[i] = (float)fmin((double)t->predicted_sd[i] / (same - unrelated), 1);
    }
    return 0;
}

/* Chooses the qualities to plan with. */
static int choose_quality(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    bool wanted = in->kind == QUALITY_PREDICTED;

    if (!in->table.predicted_quality)
        in->kind = QUALITY_RAW;
    in->left_out.predictions = wanted && in->kind == QUALITY_RAW;
    in->quality = in->kind == QUALITY_RAW ? in->table.quality_train : in->table.predicted_quality;
    in->sd = in->kind == QUALITY_RAW ? NULL : in->table.predicted_sd;
    return in->scale_same ? rescale(&in->table, files->table, err) : 0;
}

/* Finds the lowest similarity of any train question, per cell. `whole` has the answers. */
static int take_worst(struct placement_input *in, const struct table *whole, struct err *err)
{
    size_t n = table_n_cells(&in->table);

    in->worst = malloc((n + 1) * sizeof(*in->worst));
    if (!in->worst)
        return err_nomem(err);
    for (size_t i = 0; i < n; i++)
        in->worst[i] = (double)NAN;
    for (int q = 0; q < whole->n_questions; q++) {
        if (strcmp(whole->question_split[q], "train") != 0)
            continue;
        for (int v = 0; v < whole->n_configs; v++) {
            double *worst = &in->worst[table_cell(whole, (int)whole->question_context[q], v)];
            *worst = fmin(*worst, (double)whole->similarity[table_answer(whole, q, v)]); /* fmin ignores NAN */
        }
    }
    return 0;
}

/* Answers are most of a table, so planning reads them only for --min-quality-worst. */
static int find_worst(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    struct table whole;

    if (!(in->min_quality_worst > 0))
        return 0;
    if (in->table.similarity)
        return take_worst(in, &in->table, err);
    if (table_read(&whole, files->table, TABLE_ALL, err))
        return err->code;
    int code = table_n_cells(&whole) == table_n_cells(&in->table)
                   ? take_worst(in, &whole, err)
                   : err_set(err, ERR_IO, "'%s' changed while it was read", files->table);
    table_release(&whole);
    return code;
}

/* Is there a floor for facts, and can it be kept? */
static int find_fact_floors(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    const struct table *t = &in->table;
    bool known = false;

    in->fact_floors = in->min_facts > 0;
    for (int i = 0; i < t->n_contexts && !in->fact_floors; i++)
        in->fact_floors = in->rule[i].min_facts > 0;
    for (size_t i = 0; i < table_n_cells(t) && in->fact_floors && t->predicted_facts && !known; i++)
        known = !isnan(t->predicted_facts[i]);
    if (in->fact_floors && !known)
        return err_set(err, ERR_FORMAT,
                       "'%s' does not know what facts answers keep: run evp-score on its profile again", files->table);
    if (in->fact_floors && in->online)
        return err_set(err, ERR_USAGE,
                       "floors for facts and --online exclude each other: a live plan knows only mean qualities");
    return 0;
}

/* Reads everything except tiers and table. */
static int read_others(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    if (in->online)
        table_all_read(&in->table);
    if (!in->table.quality_train)
        return err_set(err, ERR_FORMAT, "'%s' has no qualities yet: run evp-score on it", files->table);
    if (choose_quality(in, files, err))
        return err->code;
    for (size_t i = 0; i < table_n_cells(&in->table) && !in->tested; i++)
        in->tested = !isnan(in->table.quality_test[i]);
    for (int t = 0; t < in->tiers.n; t++) {
        if (in->parallel_reads > 0)
            tier_set_reads(&in->tiers.at[t], in->parallel_reads);
        in->capacity[t] = in->tiers.at[t].capacity;
        in->max_bytes[t] = INT64_MAX;
    }
    tiers_pools(&in->tiers, in->pool);
    if (allocate(in, err) || placement_find_allowed(in, err) || read_access(in, files, err) ||
        read_rules(in, files, err) || find_fact_floors(in, files, err) || find_worst(in, files, err))
        return err->code;
    return read_previous(in, files, err) ? err->code : placement_find_prefixes(in, err);
}

static int read_files(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    /* decoding needs the share of a cache that is kept */
    enum table_want want = in->decode_s_per_byte > 0 ? TABLE_ALL : TABLE_PLAN;

    if ((files->tiers && tiers_read(&in->tiers, files->tiers, err)) || table_read(&in->table, files->table, want, err))
        return err->code;
    return read_others(in, files, err);
}

int placement_input_read(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    return read_files(in, files, err) ? err->code : unite_twins(in, err);
}

int placement_input_take(struct placement_input *in, struct table *t, const struct placement_files *files,
                         struct err *err)
{
    in->table = *t;
    *t = (struct table){ 0 };
    if (files->tiers && tiers_read(&in->tiers, files->tiers, err))
        return err->code;
    return read_others(in, files, err);
}

/* The plan's floors; higher ones of the caller stay. */
static void take_floors(struct placement_input *in, const struct manifest *m)
{
    bool floors = m->min_quality > 0 || m->min_quality_worst > 0 || m->min_facts > 0 || *m->rules_digest;

    in->min_quality = fmax(in->min_quality, m->min_quality);
    in->min_quality_worst = fmax(in->min_quality_worst, m->min_quality_worst);
    in->min_facts = fmax(in->min_facts, m->min_facts);
    in->sure_z = floors ? m->sure_z : in->sure_z;
    in->measured_only = in->measured_only || m->measured_only;
}

int placement_input_as(struct placement_input *in, struct manifest *m, const struct placement_files *files,
                       struct err *err)
{
    struct placement_files rest = *files;

    in->tiers = m->tiers;
    in->kind = m->predicted ? QUALITY_PREDICTED : QUALITY_RAW;
    in->scale_same = m->scale_same;
    in->sharing = m->sharing;
    in->parallel_reads = 0; /* the manifest's tiers have it */
    m->borrows = true;
    rest.tiers = NULL;
    take_floors(in, m);
    in->online = in->online || (m->n > 0 && m->at[0].variants);
    in->decode_s_per_byte = m->decode_s_per_byte;
    if (read_files(in, &rest, err))
        return err->code;
    if (strcmp(in->rules_digest, m->rules_digest) != 0 && *m->rules_digest)
        return err_set(err, ERR_FORMAT,
                       rest.rules ? "the plan was made with other rules than those of '%s'"
                                  : "the plan was made with --rules; give that file too",
                       rest.rules);
    for (int i = 0; i < m->n; i++) {
        int row = map_find(&in->table.ids, m->at[i].id, strlen(m->at[i].id));
        if (row != MAP_ABSENT)
            in->frequency[row] = m->at[i].frequency;
    }
    in->alpha = m->alpha;
    in->slo_ttft_s = m->slo_ttft_s;
    in->slo_weight = m->slo_weight;
    in->move_cost = m->move_cost;
    in->pack_weight = m->pack_weight;
    in->move_price = m->move_price;
    in->max_move = m->max_move;
    in->load = m->load;
    return unite_twins(in, err);
}

void placement_input_release(struct placement_input *in)
{
    table_release(&in->table);
    tiers_release(&in->tiers);
    manifest_release(&in->previous);
    free(in->row);
    free(in->frequency);
    free(in->rule);
    free(in->pin);
    free(in->before);
    free(in->allowed);
    free(in->worst);
    placement_prefixes_release(&in->prefixes);
    *in = (struct placement_input){ 0 };
}

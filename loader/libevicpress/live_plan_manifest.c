/* live_plan_manifest.c - copies a live plan and writes it as a manifest: rows sorted by id, then an eviction for each
 * context that the opened manifest stores and the plan no longer has.
 *
 * The totals compare the plan with recomputing everything; the other baselines would need the whole table.
 */
#include "loader/libevicpress/live_plan.h"

#include "formats/outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct totals {
    struct live_sums sums;
    struct outcome_sums plan, recomputed;
    double written; // bytes
};

/* A context's variants without holes, into `variant` (LIVE_VARIANTS). */
static struct variants without_holes(const struct live_save *save, const struct live_copy *copy,
                                     struct variant_info *variant)
{
    const struct live_context *c = &copy->context;
    struct variants f = c->variants;

    f.at = variant;
    f.n = 0;
    for (int i = 0; i < c->variants.n; i++)
        if (c->variants.at[i].config)
            variant[f.n++] = c->variants.at[i];
    uses_get(&save->uses, &copy->counts, f.uses);
    return f;
}

static double ttft_of_recomputing(const struct live_context *c)
{
    return ttft_recomputed(c->variants.prefill_s, c->variants.question_s);
}

static double sd_of_recomputing(const struct live_context *c)
{
    return sd_of_sum(c->variants.prefill_sd_s, c->variants.question_sd_s);
}

/* The row of a context, still without payload, variants, held-out quality and operation. */
static struct placement row_of(const struct live_plan *l, const struct live_context *c, struct plan_placement placement)
{
    struct placement p = { .id = c->id,
                           .token_digest = c->token_digest,
                           .config = "none",
                           .tier = placement.tier,
                           .n_tokens = c->n_tokens,
                           .kv_bytes = c->kv_bytes,
                           .quality = 1,
                           .quality_test = (double)NAN,
                           .ttft_s = ttft_of_recomputing(c),
                           .frequency = c->frequency };
    struct plan_goal goal = live_plan_goal(l);
    double sd_s = sd_of_recomputing(c);

    if (placement.tier != PLAN_RECOMPUTE) {
        const struct variant_info *variant = &c->variants.at[placement.config];
        double read_s = tier_read_s(&l->opened.tiers.at[placement.tier], variant->bytes);
        sd_s = sd_of_sum(tier_read_sd_s(&l->opened.tiers.at[placement.tier], read_s), c->variants.question_sd_s);
        p.config = variant->config;
        p.bytes = variant->bytes;
        p.quality = variant->quality;
        p.ttft_s = ttft_stored(read_s, variant->decompress_s, c->variants.question_s);
    }
    p.utility = utility(&goal, p.quality, p.ttft_s, sd_s, p.frequency);
    return p;
}

/* If the opened manifest stores the context as the same variant, copies its held-out quality and quality_sd. */
static void take_over(struct placement *p, const struct placement *before)
{
    struct cached is = { .token_digest = p->token_digest, .config = p->config, .bytes = -1 };

    if (!before)
        return;
    struct cached was = { .token_digest = before->token_digest, .config = before->config, .bytes = -1 };
    if (!cached_same(&was, &is))
        return;
    p->quality_test = before->quality_test;
    if (p->tier < 0) // a recomputed context has quality 1
        return;
    p->quality_sd = before->quality_sd;
    p->unmeasured = before->unmeasured;
}

static void add_outcomes(struct totals *t, const struct live_plan *l, const struct live_context *c,
                         const struct placement *p)
{
    struct plan_goal goal = live_plan_goal(l);
    double recompute_s = ttft_of_recomputing(c);
    struct outcome plan = { .utility = p->utility,
                            .ttft_s = p->ttft_s,
                            .quality = p->quality,
                            .quality_sd = (double)NAN,
                            .compressed = p->tier >= 0 && strcmp(p->config, "none") != 0,
                            .quality_test = p->quality_test,
                            .quality_se = (double)NAN };
    struct outcome recomputed = { .utility = utility_recomputed(&goal, recompute_s, sd_of_recomputing(c), p->frequency),
                                  .ttft_s = recompute_s,
                                  .quality = 1 };

    outcome_add(&t->plan, &plan, p->frequency);
    outcome_add(&t->recomputed, &recomputed, p->frequency);
}

/* ---- copying --------------------------------------------------------------------- */

enum { COPY_BLOCK = 512 }; // contexts: 0.2 ms, or a few ms when memory is cold

int live_save_begin(struct live_plan *l, struct live_save *save, struct err *err)
{
    *save = (struct live_save){ .at = calloc((size_t)l->n + 1, sizeof(*save->at)),
                                .n = l->n,
                                .uses = *density_uses(l->density),
                                .learns = l->learns };
    if (!save->at)
        return err_nomem(err);
    l->save = save;
    return 0;
}

bool live_save_go_on(struct live_plan *l)
{
    struct live_save *s = l->save;
    int end = s->n - s->next < COPY_BLOCK ? s->n : s->next + COPY_BLOCK;

    for (; s->next < end; s->next++) {
        struct live_copy *to = &s->at[s->next];
        const struct live_context *c = &l->at[s->next];
        if (!to->taken && c->id)
            *to = live_plan_copy(l, s->next, &s->uses, s->learns);
    }
    return s->next < s->n;
}

void live_save_end(struct live_plan *l)
{
    l->save = NULL;
}

void live_save_release(struct live_save *save)
{
    for (struct live_own *own = save->unused, *next; own; own = next) {
        next = own->next;
        free(own);
    }
    free(save->at);
    *save = (struct live_save){ 0 };
}

/* ---- rows ------------------------------------------------------------------------- */

/* The rows to write: the contexts sorted by id, then the evictions. */
struct writing {
    const struct live_plan *l;
    const struct live_save *save;
    const struct manifest *m;
    int *order;                       // (n) numbers in save->at
    const struct placement **evicted; // (n_evicted) rows of the opened manifest
    int n, n_evicted;
};

/* The row of a copied context; its variants go into `variant` (LIVE_VARIANTS) and *variants. */
static struct placement make_row(const struct writing *w, const struct live_copy *copy, struct variant_info *variant,
                                 struct variants *variants)
{
    const struct placement *before = manifest_find(&w->l->opened, copy->context.id);
    struct placement p = row_of(w->l, &copy->context, copy->placement);
    struct cached was = manifest_cached(&w->l->opened.tiers, before), is = manifest_cached(&w->m->tiers, &p);

    *variants = without_holes(w->save, copy, variant);
    p.variants = variants;
    take_over(&p, before);
    p.operation = operation_between(&was, &is);
    return p;
}

static int sum_up(const struct writing *w, struct totals *totals, struct err *err)
{
    struct variant_info variant[LIVE_VARIANTS];
    struct variants variants;
    struct plan_candidates candidates;

    if (plan_candidates_init(&candidates, &w->l->problem, err))
        return err->code;
    live_sums_begin(&totals->sums, w->l);
    for (int i = 0; i < w->n; i++) {
        const struct live_copy *copy = &w->save->at[w->order[i]];
        struct placement p = make_row(w, copy, variant, &variants);
        if (p.operation == OP_INSERT || p.operation == OP_RECOMPRESS || p.operation == OP_MOVE)
            totals->written += (double)p.bytes;
        add_outcomes(totals, w->l, &copy->context, &p);
        live_sums_add(&totals->sums, w->l, &copy->context, copy->placement, &candidates);
    }
    plan_candidates_release(&candidates);
    return 0;
}

static int put_rows(const struct writing *w, struct manifest_out *out, struct err *err)
{
    struct variant_info variant[LIVE_VARIANTS];
    struct variants variants;

    for (int i = 0; i < w->n + w->n_evicted; i++) {
        struct placement p = i < w->n ? make_row(w, &w->save->at[w->order[i]], variant, &variants)
                                      : manifest_eviction(w->evicted[i - w->n]);
        if (manifest_put(out, &p, err))
            return err->code;
    }
    return 0;
}

/* ---- the order of rows ----------------------------------------------------------------- */

/* Sorts the copies by id; id, number: (save->n) */
static int list_contexts(struct writing *w, const char **id, int *number, struct err *err)
{
    for (int k = 0; k < w->save->n; k++)
        if (w->save->at[k].context.id) {
            id[w->n] = w->save->at[k].context.id;
            number[w->n++] = k;
        }
    if (manifest_order(w->order, id, w->n, err))
        return err->code;
    for (int i = 0; i < w->n; i++)
        w->order[i] = number[w->order[i]];
    return 0;
}

/* Lists the rows of the opened manifest that store a context which the plan lacks. there: (opened.n), zeroed. */
static void list_evictions(struct writing *w, bool *there)
{
    const struct manifest *opened = &w->l->opened;

    for (int i = 0; i < w->n; i++) {
        const struct placement *p = manifest_find(opened, w->save->at[w->order[i]].context.id);
        if (p)
            there[p - opened->at] = true;
    }
    for (int i = 0; i < opened->n; i++)
        if (!there[i] && opened->at[i].tier >= 0)
            w->evicted[w->n_evicted++] = &opened->at[i];
}

static int list_rows(struct writing *w, struct err *err)
{
    size_t n = (size_t)w->save->n + 1, n_opened = (size_t)w->l->opened.n + 1;
    const char **id = malloc(n * sizeof(*id));
    int *number = malloc(n * sizeof(*number));
    bool *there = calloc(n_opened, sizeof(*there));

    w->order = malloc(n * sizeof(*w->order));
    w->evicted = malloc(n_opened * sizeof(const struct placement *));
    int code = id && number && there && w->order && w->evicted ? list_contexts(w, id, number, err) : err_nomem(err);
    if (!code)
        list_evictions(w, there);
    if (!code && w->n + w->n_evicted == 0)
        code = err_set(err, ERR_FORMAT, "the plan has no contexts, and a manifest must have one");
    free(id);
    free(number);
    free(there);
    return code;
}

/* ---- the manifest --------------------------------------------------------------------------- */

/* The manifest without its rows. */
static struct manifest head_of(const struct live_plan *l, const struct live_save *save)
{
    struct manifest m = { .alpha = l->opened.alpha,
                          .slo_ttft_s = l->opened.slo_ttft_s,
                          .slo_weight = l->opened.slo_weight,
                          .solver = "online",
                          .uses = (int64_t)save->uses.learned,
                          .move_cost = l->opened.move_cost,
                          .max_move = INT64_MAX,
                          .predicted = l->opened.predicted,
                          .scale_same = l->opened.scale_same,
                          .min_quality = l->opened.min_quality,
                          .tiers = l->opened.tiers,
                          .borrows = true };

    memcpy(m.model_digest, l->opened.model_digest, sizeof(m.model_digest));
    memcpy(m.previous, l->opened.digest, sizeof(m.previous));
    memcpy(m.price, l->opened.price, sizeof(m.price));
    memcpy(m.uses_weight, save->uses.weight, sizeof(m.uses_weight));
    return m;
}

static void set_totals(struct manifest *m, const struct totals *totals)
{
    struct plan plan = { .objective = totals->sums.objective.value - m->move_cost * totals->written,
                         .upper_bound = live_sums_bound(&totals->sums) };

    m->objective = plan.objective;
    m->upper_bound = plan.upper_bound;
    m->gap = plan_gap(&plan);
    m->total[m->n_totals++] = outcome_total(&totals->plan, "this plan");
    m->total[m->n_totals++] = outcome_total(&totals->recomputed, "recompute everything");
    m->gain_gap = outcome_gain_gap(m->objective, m->upper_bound, m->total[1].utility);
}

/* Lists the opened manifest's configs, and those of new contexts. */
static int list_configs(const struct writing *w, struct manifest *m, struct err *err)
{
    const struct map *opened = &w->l->opened.configs;

    for (int i = 0; i < opened->n; i++)
        if (manifest_list_config(m, opened->at[i].key, err))
            return err->code;
    for (int i = 0; i < w->n; i++) {
        const struct live_context *c = &w->save->at[w->order[i]].context;
        for (int v = 0; c->own && v < c->variants.n; v++)
            if (c->variants.at[v].config && manifest_list_config(m, c->variants.at[v].config, err))
                return err->code;
    }
    return 0;
}

static int write_manifest(const struct writing *w, struct manifest *m, const char *path, struct err *err)
{
    struct json *header = json_parse(w->l->opened.header, strlen(w->l->opened.header), err);
    const struct json *from[] = { header };
    struct totals totals = { 0 };

    if (!header || list_configs(w, m, err)) {
        json_free(header);
        return err->code;
    }
    if (sum_up(w, &totals, err)) {
        json_free(header);
        return err->code;
    }
    set_totals(m, &totals);
    struct manifest_out out;
    int code =
        manifest_create(&out, m, path, (struct rows_made){ .tool = "libevicpress", .from = from, .n_from = 1 }, err);
    if (!code) {
        code = put_rows(w, &out, err);
        if (!code)
            code = manifest_finish(&out, err);
        else
            manifest_abort(&out);
    }
    json_free(header);
    return code;
}

int live_save_write(const struct live_plan *l, const struct live_save *save, const char *path, struct err *err)
{
    struct manifest m = head_of(l, save);
    struct writing w = { .l = l, .save = save, .m = &m };
    int code = list_rows(&w, err);

    if (!code)
        code = write_manifest(&w, &m, path, err);
    manifest_release(&m);
    free(w.order);
    free(w.evicted);
    return code;
}

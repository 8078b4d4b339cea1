/* show_manifest.c - manifests: the placement of each context, and the plan's totals. Receipts: where each payload
 * is. */
#include "show/show.h"
#include "formats/manifest.h"
#include "formats/receipt.h"
#include "loader/store/tier_store.h"
#include "methods/config.h"

#include <math.h>

static double factor(int64_t whole, int64_t part)
{
    return whole > 0 && part > 0 ? (double)whole / (double)part : (double)NAN;
}

static const char *tier_name(const struct manifest *m, int tier)
{
    return tier < 0 ? "recompute" : m->tiers.at[tier].name;
}

static void put_placements(struct sheet *s, const struct manifest *m)
{
    static const char *const column[] = { "context",      "n_tokens",     "tier",   "config",   "size_x",
                                          "stored_bytes", "quality_test", "ttft_s", "accesses", "operation" };

    sheet_table(s, "placements", column, 10);
    for (int i = 0; i < m->n; i++) {
        const struct placement *p = &m->at[i];
        sheet_text(s, NULL, p->id);
        sheet_int(s, NULL, p->n_tokens);
        sheet_text(s, NULL, tier_name(m, p->tier));
        sheet_text(s, NULL, p->config);
        sheet_times(s, NULL, factor(p->kv_bytes, p->bytes));
        sheet_bytes(s, NULL, p->bytes);
        sheet_real(s, NULL, p->quality_test, 3);
        sheet_seconds(s, NULL, p->ttft_s);
        sheet_real(s, NULL, p->frequency, 0);
        sheet_text(s, NULL, operation_name(p->operation));
    }
    sheet_table_end(s);
}

/* The last row is `recompute`: contexts not stored. */
static void put_tiers(struct sheet *s, const struct manifest *m)
{
    static const char *const column[] = { "tier",           "n_contexts",         "stored_bytes",
                                          "capacity_bytes", "uncompressed_bytes", "size_x" };

    sheet_table(s, "tiers", column, 6);
    for (int t = 0; t <= m->tiers.n; t++) {
        int tier = t < m->tiers.n ? t : -1, n = 0;
        int64_t stored = 0, whole = 0;
        for (int i = 0; i < m->n; i++) {
            const struct placement *p = &m->at[i];
            n += p->tier == tier;
            stored += p->tier == tier ? p->bytes : 0;
            whole += p->tier == tier ? p->kv_bytes : 0;
        }
        sheet_text(s, NULL, tier_name(m, tier));
        sheet_int(s, NULL, n);
        sheet_bytes(s, NULL, stored);
        sheet_bytes(s, NULL, tier < 0 || m->tiers.at[tier].capacity == INT64_MAX ? -1 : m->tiers.at[tier].capacity);
        sheet_bytes(s, NULL, whole);
        sheet_times(s, NULL, factor(whole, stored));
    }
    sheet_table_end(s);
}

static void put_totals(struct sheet *s, const struct manifest *m)
{
    static const char *const column[] = { "totals", "utility", "ttft_s", "quality_test" };

    sheet_table(s, "totals", column, 4);
    for (int i = 0; i < m->n_totals; i++) {
        const struct manifest_total *t = &m->total[i];
        sheet_text(s, NULL, t->name);
        sheet_real(s, NULL, t->utility, 4);
        sheet_seconds(s, NULL, t->ttft_s);
        sheet_real(s, NULL, t->quality_test, 3);
    }
    sheet_table_end(s);
}

/* The reader does not check that the configs exist. */
static int check_configs(const struct manifest *m, const char *path, struct err *err)
{
    struct config config;

    for (int i = 0; i < m->n; i++) {
        const struct placement *p = &m->at[i];
        int code = config_parse(&config, p->config, err);
        for (int k = 0; p->variants && k < p->variants->n && !code; k++)
            code = config_parse(&config, p->variants->at[k].config, err);
        if (code) {
            err_wrap(err, "'%s': context '%.80s'", path, p->id);
            err->code = ERR_FORMAT;
            return err->code;
        }
    }
    return 0;
}

int show_manifest(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    struct manifest m;

    if (manifest_read(&m, path, err))
        return err->code;
    if (depth == SHOW_CHECK && check_configs(&m, path, err)) {
        manifest_release(&m);
        return err->code;
    }
    sheet_int(s, "n_contexts", m.n);
    sheet_text(s, "solver", m.solver);
    sheet_real(s, "alpha", m.alpha, 3);
    sheet_real(s, "utility", m.objective, 4);
    sheet_real(s, "upper_bound", m.upper_bound, 4);
    sheet_bool(s, "optimal", m.optimal);
    if (m.slo_weight > 0) {
        sheet_seconds(s, "slo_ttft_s", m.slo_ttft_s);
        sheet_real(s, "slo_weight", m.slo_weight, 3);
    }
    sheet_text(s, "model_digest", m.model_digest);
    sheet_text(s, "table_digest", m.table_digest);
    sheet_text(s, "previous", *m.previous ? m.previous : NULL);
    put_placements(s, &m);
    put_tiers(s, &m);
    put_totals(s, &m);
    manifest_release(&m);
    return 0;
}

/* ---- receipts ---------------------------------------------------------- */

/* Fails if a file of the receipt is missing in a tier, or has another size or checksum. */
static int check_tier(const struct receipt *r, int tier, const char *path, struct err *err)
{
    struct tier_store_options o = { .tier = &r->tiers.at[tier], .name_space = "", .use = STORE_LOOK };
    struct tier_store store;

    if (tier_store_open(&store, &o, err))
        return err_wrap(err, "'%s'", path);
    int code = 0;
    for (int i = 0; i < r->in.n && !code; i++) {
        const struct entry *e = &r->in.at[i];
        if (e->tier == tier && tier_store_check(&store, e, err))
            code = err_wrap(err, "'%s': context '%.80s', tier '%s'", path, e->id, o.tier->name);
    }
    tier_store_close(&store);
    return code;
}

static int check_files(const struct receipt *r, const char *path, struct err *err)
{
    bool used[TIER_MAX] = { 0 };

    for (int i = 0; i < r->in.n; i++)
        used[r->in.at[i].tier] = true;
    for (int t = 0; t < r->tiers.n; t++)
        if (used[t] && check_tier(r, t, path, err))
            return err->code;
    return 0;
}

int show_receipt(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    static const char *const column[] = { "context",      "n_tokens",   "tier",    "config",
                                          "stored_bytes", "file_bytes", "checksum" };
    struct receipt r;

    if (receipt_read(&r, path, err))
        return err->code;
    sheet_int(s, "n_contexts", r.ids.n);
    sheet_int(s, "n_placed", r.in.n);
    sheet_text(s, "manifest_digest", *r.manifest_digest ? r.manifest_digest : NULL);
    sheet_table(s, "placed", column, 7);
    for (int i = 0; i < r.in.n; i++) {
        const struct entry *e = &r.in.at[i];
        sheet_text(s, NULL, e->id);
        sheet_int(s, NULL, e->n_tokens);
        sheet_text(s, NULL, r.tiers.at[e->tier].name);
        sheet_text(s, NULL, e->config);
        sheet_bytes(s, NULL, e->bytes);
        sheet_bytes(s, NULL, e->size);
        sheet_text(s, NULL, e->checksum);
    }
    sheet_table_end(s);
    int code = depth == SHOW_CHECK ? check_files(&r, path, err) : 0;
    receipt_release(&r);
    return code;
}

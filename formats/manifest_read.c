/* manifest_read.c - a manifest from a stream: the header, then row after row. */
#include "formats/manifest.h"

#include "formats/fields.h"

#include <math.h>
#include <stdlib.h>
#include <limits.h>
#include <string.h>

static int read_digest(const struct json *header, const char *name, char out[DIGEST_HEX], struct err *err)
{
    const char *hex = "";

    if (json_may_text(header, name, &hex, err))
        return err->code;
    if (*hex && field_check_digest(name, hex, err))
        return err->code;
    memcpy(out, hex, *hex ? DIGEST_HEX : 1);
    return 0;
}

/* The totals are for people and may be absent. */
static int read_totals(struct manifest *m, const struct json *totals, struct err *err)
{
    if (json_count(totals) > MANIFEST_TOTALS)
        return err_set(err, ERR_FORMAT, "field 'totals' has more than %d members", MANIFEST_TOTALS);
    for (const struct json *j = json_first(totals); j; j = json_next(j)) {
        struct manifest_total *t = &m->total[m->n_totals++];
        const char *name;
        int64_t n_compressed = 0, n_tested = 0;
        t->ttft_s = t->quality = t->quality_error = (double)NAN;
        t->quality_test = t->quality_tested = t->quality_test_error = (double)NAN;
        if (json_want_text(j, "name", &name, err) || field_check_text("name", name, sizeof(t->name), err) ||
            json_want_real(j, "utility", &t->utility, err) || json_may_real(j, "ttft_s", &t->ttft_s, err) ||
            json_may_real(j, "quality", &t->quality, err) ||
            json_may_real(j, "quality_error", &t->quality_error, err) ||
            json_may_real(j, "quality_test", &t->quality_test, err) ||
            json_may_real(j, "quality_tested", &t->quality_tested, err) ||
            json_may_real(j, "quality_test_error", &t->quality_test_error, err) ||
            json_may_int(j, "compressed", &n_compressed, err) || json_may_int(j, "tested", &n_tested, err))
            return err->code;
        if (n_tested < 0 || n_tested > INT_MAX || n_compressed < 0 || n_compressed > INT_MAX)
            return err_set(err, ERR_FORMAT, "field 'tested' or 'compressed' is not a number of contexts");
        t->n_compressed = (int)n_compressed;
        t->n_tested = (int)n_tested;
        memcpy(t->name, name, strlen(name) + 1);
    }
    return 0;
}

/* A number for each tier, 0 or more. */
static int read_per_tier(const struct manifest *m, const struct json *from, const char *name, double *to,
                         struct err *err)
{
    const struct json *list = json_get(from, name);
    int t = 0;

    if (list && json_count(list) != m->tiers.n)
        return err_set(err, ERR_FORMAT, "field '%s' has %d members for %d tiers", name, json_count(list), m->tiers.n);
    for (const struct json *j = json_first(list); j; j = json_next(j)) {
        to[t] = json_real(j);
        if (!(to[t] >= 0 && to[t] <= 1e300))
            return err_set(err, ERR_FORMAT, "field '%s' holds something that is not a number of at least 0", name);
        t++;
    }
    return 0;
}

static int read_load(struct manifest *m, const struct json *load, struct err *err)
{
    struct manifest_load *l = &m->load;

    if (!load)
        return 0;
    if (json_want_real(load, "rate", &l->rate, err) || json_want_int(load, "gpus", &l->gpus, err) ||
        json_want_real(load, "gpu_linear", &l->gpu_linear, err) ||
        json_want_real(load, "gpu_square", &l->gpu_square, err) || json_may_real(load, "gpu_use", &l->gpu_use, err) ||
        json_may_real(load, "wait_s", &l->wait_s, err) || read_per_tier(m, load, "byte_prices", l->byte, err) ||
        read_per_tier(m, load, "tier_use", l->tier_use, err) || field_check_real("rate", l->rate, 0, err) ||
        field_check_real("gpu_linear", l->gpu_linear, 0, err) || field_check_real("gpu_square", l->gpu_square, 0, err))
        return err_wrap(err, "field 'load'");
    return l->gpus >= 1 ? 0 : err_set(err, ERR_FORMAT, "field 'load': field 'gpus' is below 1");
}

/* Rows refer to configs by their numbers in this list. */
static int read_configs(struct manifest *m, const struct json *configs, struct err *err)
{
    if (!json_is_array(configs))
        return err_set(err, ERR_FORMAT, "field 'configs' is %s", configs ? "not an array" : "missing");
    m->list.at = calloc((size_t)json_count(configs) + 1, sizeof(*m->list.at));
    if (!m->list.at)
        return err_nomem(err);
    for (const struct json *j = json_first(configs); j; j = json_next(j)) {
        const char *config = json_text(j);
        if (!config || field_check_text("configs", config, MANIFEST_CONFIG, err))
            return config ? err->code
                          : err_set(err, ERR_FORMAT, "field 'configs' holds something that is not a string");
        if (manifest_list_config(m, config, err))
            return err->code;
        if (m->configs.n == m->list.n)
            return err_set(err, ERR_FORMAT, "field 'configs' has '%.80s' twice", config);
        m->list.at[m->list.n] = m->configs.at[m->list.n].key;
        m->list.n++;
    }
    return 0;
}

/* Absent: false. */
static int read_bool(const struct json *header, const char *name, bool *to, struct err *err)
{
    const struct json *value = json_get(header, name);

    if (value && !json_is_bool(value))
        return err_set(err, ERR_FORMAT, "field '%s' is neither true nor false", name);
    *to = value && json_true(value);
    return 0;
}

static int read_uses(struct manifest *m, const struct json *uses, struct err *err)
{
    if (!uses)
        return 0;
    if (json_want_int(uses, "n", &m->uses, err) ||
        variants_uses_from_json(m->uses_weight, json_get(uses, "weight"), err) || field_check_bytes("n", m->uses, err))
        return err_wrap(err, "field 'uses'");
    for (int j = 0; j < VARIANTS_USES; j++)
        if (field_check_real("weight", m->uses_weight[j], 0, err))
            return err_wrap(err, "field 'uses'");
    return 0;
}

static int read_header(struct manifest *m, const struct json *header, int version, struct err *err)
{
    const char *solver, *qualities = "measured", *scale = "cosine", *sharing = "";

    m->upper_bound = m->gap = m->gain_gap = (double)NAN;
    m->max_move = INT64_MAX;
    if (read_digest(header, "model_digest", m->model_digest, err) ||
        read_digest(header, "table_digest", m->table_digest, err) ||
        read_digest(header, "rules_digest", m->rules_digest, err) ||
        read_digest(header, "previous", m->previous, err) || json_want_real(header, "alpha", &m->alpha, err) ||
        json_want_text(header, "solver", &solver, err) || json_want_real(header, "objective", &m->objective, err) ||
        json_may_real(header, "slo_ttft_s", &m->slo_ttft_s, err) ||
        json_may_real(header, "slo_weight", &m->slo_weight, err) ||
        json_may_real(header, "upper_bound", &m->upper_bound, err) || json_may_real(header, "gap", &m->gap, err) ||
        json_may_real(header, "gain_gap", &m->gain_gap, err) || read_bool(header, "optimal", &m->optimal, err) ||
        json_may_real(header, "move_cost", &m->move_cost, err) ||
        json_may_real(header, "pack_weight", &m->pack_weight, err) ||
        json_may_real(header, "decode_s_per_byte", &m->decode_s_per_byte, err) ||
        json_may_real(header, "move_price", &m->move_price, err) ||
        read_bool(header, "measured_only", &m->measured_only, err) ||
        json_may_real(header, "min_quality", &m->min_quality, err) ||
        json_may_real(header, "min_quality_worst", &m->min_quality_worst, err) ||
        json_may_real(header, "min_facts", &m->min_facts, err) || json_may_real(header, "sure_z", &m->sure_z, err) ||
        json_may_int(header, "max_move", &m->max_move, err) || json_may_text(header, "qualities", &qualities, err) ||
        json_may_text(header, "quality_scale", &scale, err) || json_may_text(header, "sharing", &sharing, err) ||
        field_check_text("solver", solver, sizeof(m->solver), err) || read_totals(m, json_get(header, "totals"), err))
        return err->code;
    memcpy(m->solver, solver, strlen(solver) + 1);
    m->predicted = strcmp(qualities, "predicted") == 0;
    if (!m->predicted && strcmp(qualities, "measured") != 0)
        return err_set(err, ERR_FORMAT, "field 'qualities' is neither 'predicted' nor 'measured'");
    m->scale_same = strcmp(scale, "same-meaning") == 0;
    if (!m->scale_same && strcmp(scale, "cosine") != 0)
        return err_set(err, ERR_FORMAT, "field 'quality_scale' is neither 'cosine' nor 'same-meaning'");
    m->sharing = strcmp(sharing, "chunks") == 0     ? SHARING_CHUNKS
                 : strcmp(sharing, "contexts") == 0 ? SHARING_CONTEXTS
                                                    : SHARING_NONE;
    if (*sharing && m->sharing == SHARING_NONE)
        return err_set(err, ERR_FORMAT, "field 'sharing' is neither 'contexts' nor 'chunks'");
    if (!json_is_array(json_get(header, "tiers")))
        return err_set(err, ERR_FORMAT, "field 'tiers' is not an array");
    if (tiers_from_json(&m->tiers, json_get(header, "tiers"), err) || read_load(m, json_get(header, "load"), err) ||
        read_uses(m, json_get(header, "uses"), err) || field_check_real("min_quality", m->min_quality, 0, err) ||
        field_check_real("min_quality_worst", m->min_quality_worst, 0, err) ||
        field_check_real("min_facts", m->min_facts, 0, err) || field_check_real("sure_z", fabs(m->sure_z), 0, err) ||
        field_check_real("slo_ttft_s", m->slo_ttft_s, 0, err) ||
        field_check_real("pack_weight", m->pack_weight, 0, err) ||
        field_check_real("decode_s_per_byte", m->decode_s_per_byte, 0, err) ||
        field_check_real("slo_weight", m->slo_weight, 0, err))
        return err->code;
    return version > 1 && read_configs(m, json_get(header, "configs"), err)
               ? err->code
               : read_per_tier(m, header, "prices", m->price, err);
}

static int read_tier(const struct manifest *m, const char *name, int *tier, struct err *err)
{
    *tier = -1;
    if (strcmp(name, "recompute") == 0)
        return 0;
    *tier = tiers_find(&m->tiers, name);
    return *tier < 0 ? err_set(err, ERR_FORMAT, "tier '%.40s' is not in the header", name) : 0;
}

/* ---- rows --------------------------------------------------------------------------- */

/* A row being read, and the data it points to. */
struct row {
    struct placement placement;
    struct variants variants;
    struct variant_info variant[VARIANTS_MAX];
};

/* The row's texts are borrowed from the JSON tree. */
static int read_row(struct row *r, const struct manifest *m, const struct json *row, struct err *err)
{
    struct placement *p = &r->placement;
    const char *tier, *operation;
    int64_t measured = 1;

    *p = (struct placement){ .quality_test = (double)NAN, .ttft_s = (double)NAN };
    if (json_get(row, "forms")) {
        if (variants_from_json(&r->variants, r->variant, row, &m->list, err))
            return err->code;
        p->variants = &r->variants;
    }
    if (json_want_text(row, "id", &p->id, err) || json_want_text(row, "token_digest", &p->token_digest, err) ||
        json_want_int(row, "n_tokens", &p->n_tokens, err) || json_want_text(row, "config", &p->config, err) ||
        json_want_text(row, "tier", &tier, err) || json_want_int(row, "bytes", &p->bytes, err) ||
        json_want_real(row, "quality", &p->quality, err) || json_may_real(row, "quality_test", &p->quality_test, err) ||
        json_may_real(row, "quality_sd", &p->quality_sd, err) || json_may_int(row, "measured", &measured, err) ||
        json_may_real(row, "ttft_s", &p->ttft_s, err) || json_may_int(row, "kv_bytes", &p->kv_bytes, err) ||
        json_want_real(row, "utility", &p->utility, err) || json_want_real(row, "frequency", &p->frequency, err) ||
        json_want_text(row, "operation", &operation, err) || json_may_text(row, "payload", &p->payload, err) ||
        read_tier(m, tier, &p->tier, err) || operation_parse(&p->operation, operation, err))
        return err->code;
    p->unmeasured = measured == 0;
    return 0;
}

static int take_row(void *m, const struct json *json, struct err *err)
{
    struct row row;

    return read_row(&row, m, json, err) ? err->code : manifest_add(m, &row.placement, err);
}

/* ---- files --------------------------------------------------------------------------- */

static int take_header(struct manifest *m, const struct rows_in *in, struct err *err)
{
    if (!in->header)
        return err_set(err, ERR_FORMAT, "%s is not a manifest: it has no header", in->path);
    m->header = strdup(in->line);
    if (!m->header)
        return err_nomem(err);
    return read_header(m, in->header, in->version, err) ? err_wrap(err, "%s line 1", in->path) : 0;
}

static int read_rows(struct manifest *m, struct rows_in *in, struct err *err)
{
    if (take_header(m, in, err) || rows_rest(in, take_row, m, err))
        return err->code;
    return in->n_rows ? 0 : err_set(err, ERR_FORMAT, "%s holds no contexts", in->path);
}

int manifest_read(struct manifest *m, const char *path, struct err *err)
{
    struct rows_in in = { 0 };
    struct digest *digest = digest_new(err);

    *m = (struct manifest){ 0 };
    if (!digest)
        return err->code;
    int code = rows_open_hashed(&in, path, "manifest", digest, err);
    if (!code)
        code = read_rows(m, &in, err);
    rows_close(&in);
    digest_end(digest, m->digest);
    if (code)
        manifest_release(m);
    return code;
}

int manifest_read_bytes(struct manifest *m, const struct rows_bytes *bytes, struct err *err)
{
    struct rows_in in;

    *m = (struct manifest){ 0 };
    if (rows_open_bytes(&in, bytes, "manifest", err))
        return err->code;
    int code = read_rows(m, &in, err);
    rows_close(&in);
    if (code)
        manifest_release(m);
    return code;
}

int manifest_read_header(struct manifest *m, const char *path, struct err *err)
{
    struct rows_in in;

    *m = (struct manifest){ 0 };
    if (rows_open(&in, path, "manifest", err))
        return err->code;
    int code = take_header(m, &in, err);
    rows_close(&in);
    if (code)
        manifest_release(m);
    return code;
}

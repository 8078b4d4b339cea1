/* manifest_write.c - a manifest to a stream: the header, then row after row. */
#include "formats/manifest.h"

static const char *or_null(const char *s)
{
    return *s ? s : NULL;
}

static void put_per_tier(struct json_out *w, const char *name, const double *at, int n)
{
    json_begin(w, name, '[');
    for (int t = 0; t < n; t++)
        json_put_real(w, NULL, at[t]);
    json_end(w, ']');
}

static void put_load(struct json_out *w, const struct manifest *m)
{
    const struct manifest_load *l = &m->load;

    json_begin(w, "load", '{');
    json_put_real(w, "rate", l->rate);
    json_put_int(w, "gpus", l->gpus);
    json_put_real(w, "gpu_linear", l->gpu_linear);
    json_put_real(w, "gpu_square", l->gpu_square);
    put_per_tier(w, "byte_prices", l->byte, m->tiers.n);
    json_put_real(w, "gpu_use", l->gpu_use);
    put_per_tier(w, "tier_use", l->tier_use, m->tiers.n);
    json_put_real(w, "wait_s", l->wait_s);
    json_end(w, '}');
}

static void put_uses(struct json_out *w, const struct manifest *m)
{
    if (m->uses == 0)
        return;
    json_begin(w, "uses", '{');
    json_put_int(w, "n", m->uses);
    json_begin(w, "weight", '[');
    for (int j = 0; j < VARIANTS_USES; j++)
        json_put_real(w, NULL, m->uses_weight[j]);
    json_end(w, ']');
    json_end(w, '}');
}

static void header_members(const void *arg, struct json_out *w)
{
    const struct manifest *m = arg;

    json_put_text(w, "model_digest", or_null(m->model_digest));
    json_put_real(w, "alpha", m->alpha);
    if (m->slo_weight > 0) {
        json_put_real(w, "slo_ttft_s", m->slo_ttft_s);
        json_put_real(w, "slo_weight", m->slo_weight);
    }
    tiers_to_json(&m->tiers, w, "tiers");
    json_put_text(w, "solver", m->solver);
    json_put_real(w, "objective", m->objective);
    json_put_real(w, "upper_bound", m->upper_bound);
    json_put_real(w, "gap", m->gap);
    json_put_real(w, "gain_gap", m->gain_gap);
    json_put_bool(w, "optimal", m->optimal);
    put_per_tier(w, "prices", m->price, m->tiers.n);
    if (m->load.rate > 0)
        put_load(w, m);
    put_uses(w, m);
    json_put_real(w, "move_cost", m->move_cost);
    if (m->pack_weight > 0)
        json_put_real(w, "pack_weight", m->pack_weight);
    if (m->decode_s_per_byte > 0)
        json_put_real(w, "decode_s_per_byte", m->decode_s_per_byte);
    json_put_real(w, "move_price", m->move_price);
    if (m->max_move == INT64_MAX)
        json_put_null(w, "max_move");
    else
        json_put_int(w, "max_move", m->max_move);
    if (m->predicted)
        json_put_text(w, "qualities", "predicted");
    if (m->scale_same)
        json_put_text(w, "quality_scale", "same-meaning");
    if (m->sharing != SHARING_NONE)
        json_put_text(w, "sharing", m->sharing == SHARING_CHUNKS ? "chunks" : "contexts");
    const struct {
        const char *name;
        double value;
    } floor[] = { { "min_quality", m->min_quality },
                  { "min_quality_worst", m->min_quality_worst },
                  { "min_facts", m->min_facts },
                  { "sure_z", m->sure_z } };
    for (size_t i = 0; i < sizeof(floor) / sizeof(*floor); i++)
        if (floor[i].value != 0)
            json_put_real(w, floor[i].name, floor[i].value);
    if (m->measured_only)
        json_put_bool(w, "measured_only", true);
    if (*m->rules_digest)
        json_put_text(w, "rules_digest", m->rules_digest);
    if (m->online) {
        json_begin(w, "configs", '[');
        for (int i = 0; i < m->configs.n; i++)
            json_put_text(w, NULL, m->configs.at[i].key);
        json_end(w, ']');
    }
    json_put_text(w, "previous", or_null(m->previous));
    json_put_text(w, "table_digest", or_null(m->table_digest));
    json_begin(w, "totals", '[');
    for (int i = 0; i < m->n_totals; i++) {
        json_begin(w, NULL, '{');
        json_put_text(w, "name", m->total[i].name);
        json_put_real(w, "utility", m->total[i].utility);
        json_put_real(w, "ttft_s", m->total[i].ttft_s);
        json_put_real(w, "quality", m->total[i].quality);
        json_put_real(w, "quality_error", m->total[i].quality_error);
        json_put_real(w, "quality_test", m->total[i].quality_test);
        json_put_real(w, "quality_tested", m->total[i].quality_tested);
        json_put_real(w, "quality_test_error", m->total[i].quality_test_error);
        json_put_int(w, "compressed", m->total[i].n_compressed);
        json_put_int(w, "tested", m->total[i].n_tested);
        json_end(w, '}');
    }
    json_end(w, ']');
}

int manifest_create(struct manifest_out *out, const struct manifest *m, const char *path, struct rows_made made,
                    struct err *err)
{
    *out = (struct manifest_out){ .m = m };
    made.kind = "manifest";
    made.version = m->online ? ROWS_MANIFEST_VERSION : ROWS_VERSION;
    made.more = header_members;
    made.arg = m;
    return rows_create(&out->rows, path, &made, err);
}

int manifest_put(struct manifest_out *out, const struct placement *row, struct err *err)
{
    struct placement p = *row;

    if (p.tier >= 0 && !p.payload) {
        manifest_put_payload_name(&out->name, p.id, p.token_digest, p.config);
        p.payload = buf_str(&out->name);
    }
    if (manifest_check_row(out->m, &p, err))
        return err_wrap(err, "context '%s'", p.id);
    struct json_out w = rows_begin(&out->rows);
    json_put_text(&w, "id", p.id);
    json_put_text(&w, "token_digest", p.token_digest);
    json_put_int(&w, "n_tokens", p.n_tokens);
    json_put_text(&w, "config", p.config);
    json_put_text(&w, "tier", p.tier < 0 ? "recompute" : out->m->tiers.at[p.tier].name);
    json_put_int(&w, "bytes", p.bytes);
    json_put_int(&w, "kv_bytes", p.kv_bytes);
    json_put_real(&w, "quality", p.quality);
    if (p.quality_sd > 0)
        json_put_real(&w, "quality_sd", p.quality_sd);
    if (p.unmeasured)
        json_put_int(&w, "measured", 0);
    json_put_real(&w, "quality_test", p.quality_test);
    json_put_real(&w, "ttft_s", p.ttft_s);
    json_put_real(&w, "utility", p.utility);
    json_put_real(&w, "frequency", p.frequency);
    json_put_text(&w, "operation", operation_name(p.operation));
    json_put_text(&w, "payload", p.payload);
    if (p.variants && variants_to_json(p.variants, &out->m->configs, &w, err))
        return err->code;
    return buf_failed(&out->name) ? err_nomem(err) : rows_put(&out->rows, &w, err);
}

int manifest_finish(struct manifest_out *out, struct err *err)
{
    buf_release(&out->name);
    return rows_finish(&out->rows, err);
}

void manifest_abort(struct manifest_out *out)
{
    buf_release(&out->name);
    rows_abort(&out->rows);
}

int manifest_write(const struct manifest *m, const char *path, struct rows_made made, struct err *err)
{
    struct manifest_out out;
    int code = manifest_create(&out, m, path, made, err);

    if (code)
        return code;
    for (int i = 0; i < m->n && !code; i++)
        code = manifest_put(&out, &m->at[i], err);
    if (!code)
        return manifest_finish(&out, err);
    manifest_abort(&out);
    return code;
}

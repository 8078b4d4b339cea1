/* variants.c - one row's variants: checked, read, written. */
#include "loader/formats/variants.h"

#include "base/digest.h"
#include "loader/formats/fields.h"
#include "loader/formats/manifest.h"

#include <math.h>
#include <string.h>

/* Checks variant i. hash (i + 1): of the configs up to it; sets the last one. */
static int check_variant(const struct variants *f, int i, uint64_t *hash, struct err *err)
{
    const struct variant_info *variant = &f->at[i];

    if (field_check_text("config", variant->config, MANIFEST_CONFIG, err))
        return err->code;
    if (field_check_bytes("bytes", variant->bytes, err) || field_check_real("quality", variant->quality, 0, err) ||
        (!isnan(variant->decompress_s) && field_check_real("decompress_s", variant->decompress_s, 0, err)))
        return err->code;
    if (variant->quality > 1 || variant->quality < f->min_quality)
        return err_set(err, ERR_FORMAT, "field 'quality' is %s",
                       variant->quality > 1 ? "above one" : "below min_quality");
    hash[i] = digest_xxh3(variant->config, strlen(variant->config));
    for (int k = 0; k < i; k++)
        if (hash[k] == hash[i] && strcmp(f->at[k].config, variant->config) == 0)
            return err_set(err, ERR_FORMAT, "config '%.80s' comes twice", variant->config);
    return 0;
}

int variants_check(const struct variants *f, const struct tiers *tiers, struct err *err)
{
    uint64_t hash[VARIANTS_MAX];

    if (f->n < 0 || f->n > VARIANTS_MAX)
        return err_set(err, ERR_FORMAT, "field 'forms' has more than %d members", VARIANTS_MAX);
    if (field_check_real("prefill_s", f->prefill_s, 0, err) || field_check_real("question_s", f->question_s, 0, err) ||
        field_check_real("min_quality", f->min_quality, 0, err) ||
        field_check_real("prefill_sd_s", f->prefill_sd_s, 0, err) ||
        field_check_real("question_sd_s", f->question_sd_s, 0, err))
        return err->code;
    if (f->pin && strcmp(f->pin, "recompute") != 0 && tiers_find(tiers, f->pin) < 0)
        return err_set(err, ERR_FORMAT, "field 'pin': tier '%.40s' is not in the header", f->pin);
    for (int i = 0; i < f->n; i++)
        if (check_variant(f, i, hash, err))
            return err_wrap(err, "variant %d", i + 1);
    return 0;
}

const struct variant_info *variants_find(const struct variants *f, const char *config)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->at[i].config, config) == 0)
            return &f->at[i];
    return NULL;
}

static int variant_from_json(struct variant_info *variant, const struct json *v, struct err *err)
{
    *variant = (struct variant_info){ .decompress_s = (double)NAN };
    if (!json_is_object(v))
        return err_set(err, ERR_FORMAT, "not an object");
    if (json_want_text(v, "config", &variant->config, err) || json_want_int(v, "bytes", &variant->bytes, err) ||
        json_want_real(v, "quality", &variant->quality, err) ||
        json_may_real(v, "decompress_s", &variant->decompress_s, err))
        return err->code;
    return 0;
}

int variants_from_json(struct variants *f, struct variant_info *variant, const struct json *row, struct err *err)
{
    const struct json *array = json_get(row, "forms");

    *f = (struct variants){ .at = variant };
    if (!json_is_array(array))
        return err_set(err, ERR_FORMAT, "field 'forms' is not an array");
    if (json_want_real(row, "prefill_s", &f->prefill_s, err) ||
        json_want_real(row, "question_s", &f->question_s, err) ||
        json_may_real(row, "prefill_sd_s", &f->prefill_sd_s, err) ||
        json_may_real(row, "question_sd_s", &f->question_sd_s, err) ||
        json_may_real(row, "min_quality", &f->min_quality, err) || json_may_text(row, "pin", &f->pin, err))
        return err->code;
    for (const struct json *v = json_first(array); v; v = json_next(v)) {
        if (f->n == VARIANTS_MAX)
            return err_set(err, ERR_FORMAT, "field 'forms' has more than %d members", VARIANTS_MAX);
        if (variant_from_json(&variant[f->n++], v, err))
            return err_wrap(err, "variant %d", f->n);
    }
    return 0;
}

void variants_to_json(const struct variants *f, struct json_out *w)
{
    json_put_real(w, "prefill_s", f->prefill_s);
    json_put_real(w, "question_s", f->question_s);
    if (f->prefill_sd_s > 0)
        json_put_real(w, "prefill_sd_s", f->prefill_sd_s);
    if (f->question_sd_s > 0)
        json_put_real(w, "question_sd_s", f->question_sd_s);
    if (f->min_quality > 0)
        json_put_real(w, "min_quality", f->min_quality);
    if (f->pin)
        json_put_text(w, "pin", f->pin);
    json_begin(w, "forms", '[');
    for (int i = 0; i < f->n; i++) {
        json_begin(w, NULL, '{');
        json_put_text(w, "config", f->at[i].config);
        json_put_int(w, "bytes", f->at[i].bytes);
        json_put_real(w, "quality", f->at[i].quality);
        json_put_real(w, "decompress_s", f->at[i].decompress_s);
        json_end(w, '}');
    }
    json_end(w, ']');
}

/* variants.c - one row's variants: checked, read, written. */
#include "formats/variants.h"

#include "base/digest.h"
#include "formats/fields.h"
#include "formats/manifest.h"

#include <math.h>
#include <string.h>

/* Checks variant i and sets hash[i], the hash of its config; those before it are set. */
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
    for (int j = 0; j < VARIANTS_USES; j++)
        if (field_check_real("uses", f->uses[j], 0, err))
            return err->code;
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

/* ---- reading ---------------------------------------------------------------------------- */

/* The current variant's number in each column. */
struct columns {
    const struct json *config, *bytes, *quality, *decompress_s; // the last one may be NULL
};

/* Sets *first to the first of a column's n numbers. */
static int find_column(const struct json *forms, const char *name, int n, const struct json **first, struct err *err)
{
    const struct json *column = json_get(forms, name);

    if (!json_is_array(column))
        return err_set(err, ERR_FORMAT, "field '%s' of 'forms' is %s", name, column ? "not an array" : "missing");
    if (json_count(column) != n)
        return err_set(err, ERR_FORMAT, "field '%s' of 'forms' has %d members, 'config' has %d", name,
                       json_count(column), n);
    *first = json_first(column);
    return 0;
}

static int find_columns(struct columns *c, const struct json *forms, int *n, struct err *err)
{
    bool timed = !json_is_null(json_get(forms, "decompress_s")) && json_get(forms, "decompress_s");

    if (!json_is_object(forms))
        return err_set(err, ERR_FORMAT, "field 'forms' is not an object");
    *n = json_count(json_get(forms, "config"));
    *c = (struct columns){ 0 };
    if (*n > VARIANTS_MAX)
        return err_set(err, ERR_FORMAT, "field 'forms' has more than %d members", VARIANTS_MAX);
    if (find_column(forms, "config", *n, &c->config, err) || find_column(forms, "bytes", *n, &c->bytes, err) ||
        find_column(forms, "quality", *n, &c->quality, err))
        return err->code;
    return timed ? find_column(forms, "decompress_s", *n, &c->decompress_s, err) : 0;
}

static int read_variant(struct variant_info *variant, const struct columns *c, const struct variant_configs *configs,
                        struct err *err)
{
    int64_t config;

    variant->decompress_s = c->decompress_s ? (double)NAN : 0;
    if (json_to_int(c->config, "config", &config, err) || json_to_int(c->bytes, "bytes", &variant->bytes, err) ||
        json_to_real(c->quality, "quality", &variant->quality, err) ||
        (c->decompress_s && !json_is_null(c->decompress_s) &&
         json_to_real(c->decompress_s, "decompress_s", &variant->decompress_s, err)))
        return err->code;
    if (config < 0 || config >= configs->n)
        return err_set(err, ERR_FORMAT, "field 'config' is %lld, but the header lists %d configs", (long long)config,
                       configs->n);
    variant->config = configs->at[config];
    return 0;
}

static int columns_from_json(struct variants *f, struct variant_info *variant, const struct json *forms,
                             const struct variant_configs *configs, struct err *err)
{
    struct columns c;
    int n = 0;

    if (find_columns(&c, forms, &n, err))
        return err->code;
    for (; f->n < n; f->n++) {
        if (read_variant(&variant[f->n], &c, configs, err))
            return err_wrap(err, "variant %d", f->n + 1);
        c = (struct columns){ json_next(c.config), json_next(c.bytes), json_next(c.quality),
                              json_next(c.decompress_s) };
    }
    return 0;
}

int variants_uses_from_json(double uses[VARIANTS_USES], const struct json *uses_array, struct err *err)
{
    const struct json *number = json_first(uses_array);

    if (!uses_array)
        return 0;
    if (!json_is_array(uses_array) || json_count(uses_array) != VARIANTS_USES)
        return err_set(err, ERR_FORMAT, "field 'uses' is not a list of %d numbers", VARIANTS_USES);
    for (int j = 0; j < VARIANTS_USES; j++, number = json_next(number))
        if (json_to_real(number, "uses", &uses[j], err))
            return err->code;
    return 0;
}

int variants_from_json(struct variants *f, struct variant_info *variant, const struct json *row,
                       const struct variant_configs *configs, struct err *err)
{
    const struct json *forms = json_get(row, "forms");

    *f = (struct variants){ .at = variant };
    if (json_want_real(row, "prefill_s", &f->prefill_s, err) ||
        json_want_real(row, "question_s", &f->question_s, err) ||
        json_may_real(row, "prefill_sd_s", &f->prefill_sd_s, err) ||
        json_may_real(row, "question_sd_s", &f->question_sd_s, err) ||
        json_may_real(row, "min_quality", &f->min_quality, err) || json_may_text(row, "pin", &f->pin, err) ||
        variants_uses_from_json(f->uses, json_get(row, "uses"), err))
        return err->code;
    return columns_from_json(f, variant, forms, configs, err);
}

/* ---- writing ------------------------------------------------------------------------------ */

static int put_configs(const struct variants *f, const struct map *configs, struct json_out *w, struct err *err)
{
    json_begin(w, "config", '[');
    for (int i = 0; i < f->n; i++) {
        int number = map_find(configs, f->at[i].config, strlen(f->at[i].config));
        if (number < 0)
            return err_set(err, ERR_FAIL, "config '%.80s' is not in the header's list", f->at[i].config);
        json_put_int(w, NULL, number);
    }
    json_end(w, ']');
    return 0;
}

static void put_decompress(const struct variants *f, struct json_out *w)
{
    bool all_zero = true;

    for (int i = 0; i < f->n; i++)
        all_zero = all_zero && f->at[i].decompress_s == 0;
    if (all_zero)
        return;
    json_begin(w, "decompress_s", '[');
    for (int i = 0; i < f->n; i++)
        json_put_real(w, NULL, f->at[i].decompress_s);
    json_end(w, ']');
}

static void put_uses(const struct variants *f, struct json_out *w)
{
    double all = 0;

    for (int j = 0; j < VARIANTS_USES; j++)
        all += f->uses[j];
    if (all == 0)
        return;
    json_begin(w, "uses", '[');
    for (int j = 0; j < VARIANTS_USES; j++)
        json_put_real(w, NULL, f->uses[j]);
    json_end(w, ']');
}

int variants_to_json(const struct variants *f, const struct map *configs, struct json_out *w, struct err *err)
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
    put_uses(f, w);
    json_begin(w, "forms", '{');
    if (put_configs(f, configs, w, err))
        return err->code;
    json_begin(w, "bytes", '[');
    for (int i = 0; i < f->n; i++)
        json_put_int(w, NULL, f->at[i].bytes);
    json_end(w, ']');
    json_begin(w, "quality", '[');
    for (int i = 0; i < f->n; i++)
        json_put_real(w, NULL, f->at[i].quality);
    json_end(w, ']');
    put_decompress(f, w);
    json_end(w, '}');
    return 0;
}

/* payload_cache.c - the JSON that describes a payload's cache. The reader does not trust its input: anyone may have
 * written the file. */
#include "variants/payload_cache.h"

#include "base/json.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const enum dtype dtypes[] = { DTYPE_F32, DTYPE_F16, DTYPE_BF16 };
static const char *const scalings[] = { "default", "linear", "llama3", "yarn", "longrope" };

/* The numbers of a scaling. */
static const struct {
    const char *name, *scalings;
    size_t offset;
} numbers[] = {
    { "factor", "linear llama3 yarn longrope", offsetof(struct payload_rope, factor) },
    { "low_freq_factor", "llama3", offsetof(struct payload_rope, low) },
    { "high_freq_factor", "llama3", offsetof(struct payload_rope, high) },
    { "beta_slow", "yarn", offsetof(struct payload_rope, low) },
    { "beta_fast", "yarn", offsetof(struct payload_rope, high) },
    { "attention_factor", "yarn longrope", offsetof(struct payload_rope, attention_factor) },
};
enum { NUMBERS = sizeof(numbers) / sizeof(*numbers) };

static bool has_original(const char *scaling)
{
    return strcmp(scaling, "default") != 0 && strcmp(scaling, "linear") != 0;
}

/* ---- writing ------------------------------------------------------------ */

static void put_rope(struct json_out *w, const struct payload_rope *r)
{
    json_begin(w, "rope", '{');
    json_put_real(w, "theta", r->theta);
    json_put_int(w, "dims", r->dims);
    json_put_text(w, "scaling", r->scaling);
    for (int i = 0; i < NUMBERS; i++)
        if (strstr(numbers[i].scalings, r->scaling))
            json_put_real(w, numbers[i].name, *(const double *)(const void *)((const char *)r + numbers[i].offset));
    if (has_original(r->scaling))
        json_put_int(w, "original_max_position_embeddings", r->original_max_position_embeddings);
    json_end(w, '}');
}

static void put_windows(struct json_out *w, const struct kv_shape *shape)
{
    json_put_int(w, "window", shape->window);
    json_begin(w, "windowed", '[');
    for (int l = 0; l < kv_all_layers(shape); l++)
        if (kv_has_window(shape, l))
            json_put_int(w, NULL, l);
    json_end(w, ']');
}

void payload_cache_put(struct buf *text, const struct kv_shape *shape, const struct payload_model *model)
{
    struct json_out w = { .buf = text };

    json_begin(&w, NULL, '{');
    json_put_text(&w, "dtype", dtype_name(shape->dtype));
    json_put_int(&w, "n_layers", kv_all_layers(shape));
    json_put_int(&w, "n_heads", shape->n_heads);
    json_put_int(&w, "n_kv_heads", shape->n_kv_heads);
    json_put_int(&w, "head_dim", shape->head_dim);
    if (*model->dtype)
        json_put_text(&w, "model_dtype", model->dtype);
    if (shape->n_windowed > 0)
        put_windows(&w, shape);
    put_rope(&w, &model->rope);
    json_end(&w, '}');
}

void payload_lengths_put(struct buf *text, const int *length, int n)
{
    struct json_out w = { .buf = text };

    json_begin(&w, NULL, '[');
    for (int i = 0; i < n; i++)
        json_put_int(&w, NULL, length[i]);
    json_end(&w, ']');
}

void payload_errors_put(struct buf *text, const double *error, int n)
{
    struct json_out w = { .buf = text };

    json_begin(&w, NULL, '[');
    for (int i = 0; i < 2 * n; i++)
        json_put_real(&w, NULL, round(error[i] * 1e6) / 1e6);
    json_end(&w, ']');
}

/* ---- reading ------------------------------------------------------------ */

/* Reads a member that must be a number from `min` to INT_MAX. */
static int want_number(const struct json *object, const char *name, int min, int *out, struct err *err)
{
    int64_t v;

    if (json_want_int(object, name, &v, err))
        return err->code;
    if (v < min || v > INT_MAX)
        return err_set(err, ERR_FORMAT, "field '%s' is %lld, not from %d to %d", name, (long long)v, min, INT_MAX);
    *out = (int)v;
    return 0;
}

static int want_positive(const struct json *object, const char *name, double *out, struct err *err)
{
    if (json_want_real(object, name, out, err))
        return err->code;
    return isfinite(*out) && *out > 0 ? 0 : err_set(err, ERR_FORMAT, "field '%s' is not above 0", name);
}

static int read_scaling(struct payload_rope *r, const struct json *rope, struct err *err)
{
    const char *scaling;

    if (json_want_text(rope, "scaling", &scaling, err))
        return err->code;
    for (size_t i = 0; i < sizeof(scalings) / sizeof(*scalings); i++)
        if (strcmp(scaling, scalings[i]) == 0)
            r->scaling = scalings[i];
    if (!r->scaling)
        return err_set(err, ERR_FORMAT, "field 'scaling' is '%.40s', not default, linear, llama3, yarn or longrope",
                       scaling);
    for (int i = 0; i < NUMBERS; i++)
        if (strstr(numbers[i].scalings, scaling) &&
            want_positive(rope, numbers[i].name, (double *)(void *)((char *)r + numbers[i].offset), err))
            return err->code;
    if (!has_original(scaling))
        return 0;
    return want_number(rope, "original_max_position_embeddings", 1, &r->original_max_position_embeddings, err);
}

static int read_rope(struct payload_cache *c, const struct json *rope, struct err *err)
{
    struct payload_rope *r = &c->rope;

    if (want_positive(rope, "theta", &r->theta, err) || want_number(rope, "dims", 0, &r->dims, err) ||
        read_scaling(r, rope, err))
        return err->code;
    return r->dims <= c->shape.head_dim && r->dims % 2 == 0
               ? 0
               : err_set(err, ERR_FORMAT, "field 'dims' is %d, not an even number up to %d", r->dims,
                         c->shape.head_dim);
}

static int read_dtypes(struct payload_cache *c, const struct json *cache, struct err *err)
{
    const char *dtype, *of_model = "";

    if (json_want_text(cache, "dtype", &dtype, err) || json_may_text(cache, "model_dtype", &of_model, err))
        return err->code;
    if (strlen(of_model) >= sizeof(c->model_dtype))
        return err_set(err, ERR_FORMAT, "field 'model_dtype' is too long");
    snprintf(c->model_dtype, sizeof(c->model_dtype), "%s", of_model);
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++)
        if (strcmp(dtype, dtype_name(dtypes[i])) == 0) {
            c->shape.dtype = dtypes[i];
            return 0;
        }
    return err_set(err, ERR_FORMAT, "field 'dtype' is '%.40s', not f32, f16 or bf16", dtype);
}

/* The layers ascend. */
static int read_windows(struct kv_shape *s, const struct json *cache, struct err *err)
{
    const struct json *list = json_get(cache, "windowed");
    int64_t layer, last = -1, all = s->n_layers;

    if (!list && !json_get(cache, "window"))
        return 0;
    if (!json_is_array(list) || json_count(list) == 0 || all > KV_LAYERS_MAX)
        return err_set(err, ERR_FORMAT, "field 'windowed' is not a list of layers");
    for (const struct json *at = json_first(list); at; at = json_next(at), last = layer, s->n_windowed++) {
        if (json_to_int(at, "windowed", &layer, err))
            return err->code;
        if (layer <= last || layer >= all)
            return err_set(err, ERR_FORMAT, "field 'windowed' does not ascend, or leaves the %lld layers",
                           (long long)all);
        s->windowed[layer / 64] |= (uint64_t)1 << layer % 64;
    }
    s->n_layers -= s->n_windowed;
    return want_number(cache, "window", 1, &s->window, err);
}

static int read_cache(struct payload_cache *c, const struct json *cache, struct err *err)
{
    struct kv_shape *s = &c->shape;

    if (read_dtypes(c, cache, err) || want_number(cache, "n_layers", 1, &s->n_layers, err) ||
        want_number(cache, "n_heads", 1, &s->n_heads, err) ||
        want_number(cache, "n_kv_heads", 1, &s->n_kv_heads, err) ||
        want_number(cache, "head_dim", 1, &s->head_dim, err) || read_windows(s, cache, err))
        return err->code;
    if (s->n_heads % s->n_kv_heads)
        return err_set(err, ERR_FORMAT, "%d heads cannot share %d kv heads", s->n_heads, s->n_kv_heads);
    const struct json *rope = json_get(cache, "rope");
    if (!json_is_object(rope))
        return err_set(err, ERR_FORMAT, "field 'rope' is missing or not an object");
    return read_rope(c, rope, err) ? err_wrap(err, "'rope'") : 0;
}

int payload_cache_parse(struct payload_cache *c, const char *text, struct err *err)
{
    struct json *cache = json_parse(text, strlen(text), err);

    *c = (struct payload_cache){ 0 };
    if (!cache)
        return err_wrap(err, "metadata 'cache'");
    int code = read_cache(c, cache, err);
    json_free(cache);
    return code ? err_wrap(err, "metadata 'cache'") : 0;
}

static int read_lengths(int *length, int n, const struct json *lengths, struct err *err)
{
    int i = 0;

    if (!json_is_array(lengths) || json_count(lengths) != n)
        return err_set(err, ERR_FORMAT, "not a list of %d numbers", n);
    for (const struct json *at = json_first(lengths); at; at = json_next(at), i++) {
        int64_t v;
        if (json_to_int(at, "length", &v, err))
            return err->code;
        if (v < 0 || v > INT_MAX)
            return err_set(err, ERR_FORMAT, "length %lld is not from 0 to %d", (long long)v, INT_MAX);
        length[i] = (int)v;
    }
    return 0;
}

int payload_lengths_parse(int *length, int n, const char *text, struct err *err)
{
    struct json *lengths = json_parse(text, strlen(text), err);
    int code = lengths ? read_lengths(length, n, lengths, err) : err->code;

    json_free(lengths);
    return code ? err_wrap(err, "metadata 'lengths'") : 0;
}

static int read_errors(double *error, int n, const struct json *errors, struct err *err)
{
    int i = 0;

    if (!json_is_array(errors) || json_count(errors) != 2 * n)
        return err_set(err, ERR_FORMAT, "not a list of %d numbers", 2 * n);
    for (const struct json *at = json_first(errors); at; at = json_next(at), i++) {
        if (json_to_real(at, "error", &error[i], err))
            return err->code;
        if (!(error[i] >= 0) || !isfinite(error[i]))
            return err_set(err, ERR_FORMAT, "error %g is not a number from 0 on", error[i]);
    }
    return 0;
}

int payload_errors_parse(double *error, int n, const char *text, struct err *err)
{
    struct json *errors = json_parse(text, strlen(text), err);
    int code = errors ? read_errors(error, n, errors, err) : err->code;

    json_free(errors);
    return code ? err_wrap(err, "metadata 'errors'") : 0;
}

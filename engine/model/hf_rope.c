/* hf_rope.c - what config.json says of the rotary embedding: the base, the rotated share of a head, and the scaling for
 * texts that are longer than those of the training.
 *
 * There are two descriptions, rope_scaling and transformers 5's rope_parameters; where both are given they must agree.
 * A field that the scaling does not read is refused by name. yarn, and longrope for what is longer than the original
 * length, stretch the model's limit; dynamic changes nothing up to max_position_embeddings, which stays the limit.
 */
#include "engine/model/model_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The scalings by their names. */
static const struct {
    const char *name;
    enum rope_scaling scaling;
} types[] = {
    { "default", ROPE_PLAIN }, { "dynamic", ROPE_PLAIN },     { "linear", ROPE_LINEAR }, { "llama3", ROPE_LLAMA3 },
    { "yarn", ROPE_YARN },     { "longrope", ROPE_LONGROPE }, { "su", ROPE_LONGROPE },
};

#define OF(scaling) (1u << (scaling))
#define ANY         (~0u)
#define PICTURES    (1u << 31) // where pictures are another model's

/* The fields of a description, and the scalings that read each; under others a field must be absent, null or plain. */
static const struct {
    const char *name;
    unsigned scalings;
    double plain; // NAN: none
} fields[] = {
    { "type", ANY, (double)NAN },
    { "rope_type", ANY, (double)NAN },
    { "rope_theta", ANY, (double)NAN },
    { "partial_rotary_factor", ANY, (double)NAN },
    { "factor", ANY, (double)NAN },
    { "low_freq_factor", ANY, (double)NAN },
    { "high_freq_factor", ANY, (double)NAN },
    { "original_max_position_embeddings", ANY, (double)NAN },
    { "finetuned", OF(ROPE_YARN), (double)NAN }, // changes nothing
    { "attention_factor", OF(ROPE_YARN) | OF(ROPE_LONGROPE), 1 },
    { "beta_fast", OF(ROPE_YARN), (double)NAN },
    { "beta_slow", OF(ROPE_YARN), (double)NAN },
    { "mscale", OF(ROPE_YARN), (double)NAN },
    { "mscale_all_dim", OF(ROPE_YARN), (double)NAN },
    { "truncate", OF(ROPE_YARN), (double)NAN },
    { "mrope_section", PICTURES, (double)NAN }, // how the positions of pictures are split; in a text all are equal
    { "mrope_interleaved", PICTURES, (double)NAN },
    { "short_factor", OF(ROPE_LONGROPE), (double)NAN },
    { "long_factor", OF(ROPE_LONGROPE), (double)NAN },
};

static int check_fields(const struct model *m, const struct json *from, enum rope_scaling scaling, struct err *err)
{
    const unsigned kind = OF(scaling) | (m->pictures ? PICTURES : 0);
    const size_t n = sizeof(fields) / sizeof(*fields);

    for (const struct json *f = json_first(from); f; f = json_next(f)) {
        size_t i = 0;
        while (i < n && strcmp(fields[i].name, json_name(f)) != 0)
            i++;
        if (i < n ? !(fields[i].scalings & kind) && !hf_plain(f, fields[i].plain) : !json_is_null(f))
            return err_set(err, ERR_FORMAT, "rotary scaling with '%.64s' is not supported", json_name(f));
    }
    return 0;
}

/* The rotated share of a head, in config.json or one of its descriptions of the rotary embedding. */
static int read_partial(const struct model *m, struct model_config *c, const struct json *from, struct err *err)
{
    double part = 1;

    if (!json_get(from, "partial_rotary_factor"))
        return 0;
    if (json_may_real(from, "partial_rotary_factor", &part, err))
        return err->code;
    if ((part != 1 && !m->family->partial) || !(part > 0 && part <= 1))
        return err_set(err, ERR_FORMAT, "field 'partial_rotary_factor' is %g, which is not supported", part);
    c->rotary = (int)(c->head_dim * part);
    return 0;
}

/* ---- yarn ----------------------------------------------------------------- */

/* What cosines and sines are multiplied by when the text is `factor` times as long. */
static double mscale(double factor, double m)
{
    return factor > 1 ? 0.1 * m * log(factor) + 1 : 1;
}

/* Fields that are absent have the defaults of transformers; so has a beta of 0. */
static int read_yarn(struct model_config *c, const struct json *from, struct err *err)
{
    const struct json *truncate = json_get(from, "truncate");
    double one = 0, all = 0;

    c->rope_low = c->rope_high = 0;
    if (json_may_real(from, "beta_slow", &c->rope_low, err) || json_may_real(from, "beta_fast", &c->rope_high, err) ||
        json_may_real(from, "mscale", &one, err) || json_may_real(from, "mscale_all_dim", &all, err))
        return err->code;
    c->rope_low = c->rope_low == 0 ? 1 : c->rope_low;
    c->rope_high = c->rope_high == 0 ? 32 : c->rope_high;
    c->rope_exact = truncate && !json_true(truncate);
    c->rope_attention =
        one != 0 && all != 0 ? mscale(c->rope_factor, one) / mscale(c->rope_factor, all) : mscale(c->rope_factor, 1);
    if (json_may_real(from, "attention_factor", &c->rope_attention, err))
        return err->code;
    c->max_tokens = (int)fmin(fmax(c->rope_factor * c->rope_original, 0), INT_MAX);
    return 0;
}

/* ---- longrope -------------------------------------------------------------- */

/* `half` divisors above 0 out of a list. */
static int read_divisors(float *out, int half, const struct json *from, const char *name, struct err *err)
{
    const struct json *list = json_get(from, name);
    int i = 0;

    if (!json_is_array(list) || json_count(list) != half)
        return err_set(err, ERR_FORMAT, "field '%s' is not a list of %d numbers", name, half);
    for (const struct json *at = json_first(list); at; at = json_next(at), i++) {
        out[i] = (float)json_real(at);
        if (!(out[i] > 0 && isfinite(out[i])))
            return err_set(err, ERR_FORMAT, "field '%s' has a number that is not above 0", name);
    }
    return 0;
}

static int read_longrope(struct model *m, struct model_config *c, const struct json *from, struct err *err)
{
    const int half = c->rotary / 2;
    const size_t bytes = 2 * (size_t)half * sizeof(float);
    float *had = m->rope_divisors;

    c->rope_factor = (double)c->max_tokens / c->rope_original;
    m->rope_divisors = malloc(bytes + 1);
    int code = !m->rope_divisors ? err_nomem(err)
               : json_may_real(from, "factor", &c->rope_factor, err) ||
                       read_divisors(m->rope_divisors, half, from, "short_factor", err) ||
                       read_divisors(m->rope_divisors + half, half, from, "long_factor", err)
                   ? err->code
                   : 0;
    if (!code && had && memcmp(had, m->rope_divisors, bytes) != 0)
        code = err_set(err, ERR_FORMAT, "fields 'rope_parameters' and 'rope_scaling' do not agree");
    free(had);
    c->rope_divisors = m->rope_divisors;
    c->rope_attention = c->rope_factor > 1 ? sqrt(1 + log(c->rope_factor) / log(c->rope_original)) : 1;
    return code || json_may_real(from, "attention_factor", &c->rope_attention, err) ? err->code : 0;
}

/* ---- all scalings ------------------------------------------------------------ */

/* The length of the original model. Phi-3 has it outside the description, which takes precedence in transformers; it
 * is max_position_embeddings where neither has it, but for llama3. */
static int read_original(const struct model *m, struct model_config *c, const struct json *from, struct err *err)
{
    const char *name = "original_max_position_embeddings";
    const struct json *top = json_get(m->text, name);

    return hf_int(top && !json_is_null(top) ? m->text : from, name, c->rope_scaling == ROPE_LLAMA3 ? 0 : c->max_tokens,
                  &c->rope_original, err);
}

static int read_type(const struct model *m, struct model_config *c, const struct json *from, struct err *err)
{
    const char *type = "default";
    size_t i = 0;

    if (json_may_text(from, "type", &type, err) || json_may_text(from, "rope_type", &type, err))
        return err->code;
    if (m->pictures && strcmp(type, "mrope") == 0)
        type = "default";
    while (i < sizeof(types) / sizeof(*types) && strcmp(types[i].name, type) != 0)
        i++;
    if (i == sizeof(types) / sizeof(*types))
        return err_set(err, ERR_FORMAT, "rotary scaling '%.64s' is not supported", type);
    c->rope_scaling = types[i].scaling;
    if (c->rope_scaling == ROPE_YARN && m->family->longrope)
        c->rope_scaling = ROPE_LONGROPE; // the old name of the same
    return 0;
}

/* One of config.json's two descriptions of the rotary embedding, an object. */
static int read_scaling(struct model *m, struct model_config *c, const struct json *from, struct err *err)
{
    if (json_may_real(from, "rope_theta", &c->rope_theta, err) || read_type(m, c, from, err) ||
        check_fields(m, from, c->rope_scaling, err) || read_partial(m, c, from, err))
        return err->code;
    switch (c->rope_scaling) {
    case ROPE_PLAIN: return 0;
    case ROPE_LONGROPE: return read_original(m, c, from, err) || read_longrope(m, c, from, err) ? err->code : 0;
    case ROPE_LINEAR: return json_want_real(from, "factor", &c->rope_factor, err);
    case ROPE_YARN:
        return json_want_real(from, "factor", &c->rope_factor, err) || read_original(m, c, from, err) ||
                       read_yarn(c, from, err)
                   ? err->code
                   : 0;
    case ROPE_LLAMA3:
        return json_want_real(from, "factor", &c->rope_factor, err) ||
                       json_want_real(from, "low_freq_factor", &c->rope_low, err) ||
                       json_want_real(from, "high_freq_factor", &c->rope_high, err) || read_original(m, c, from, err)
                   ? err->code
                   : 0;
    }
    return 0;
}

/* Do both say the same about the rotary embedding? */
static bool same_rope(const struct model_config *a, const struct model_config *b)
{
    return a->rope_theta == b->rope_theta && a->rope_scaling == b->rope_scaling && a->rope_factor == b->rope_factor &&
           a->rope_low == b->rope_low && a->rope_high == b->rope_high && a->rope_original == b->rope_original &&
           a->rope_attention == b->rope_attention && a->rope_exact == b->rope_exact && a->rotary == b->rotary;
}

/* The base of the layers with a window. *parameters: the description of the others, where each kind has its own. */
static int read_window_base(struct model *m, const struct json **parameters, struct err *err)
{
    const struct json *full = json_get(*parameters, "full_attention"),
                      *window = json_get(*parameters, "sliding_attention");
    struct model_config its = m->config;

    its.rope_theta = m->family->theta_window;
    if (json_may_real(m->text, "rope_local_base_freq", &its.rope_theta, err) ||
        (json_is_object(window) && read_scaling(m, &its, window, err)))
        return err->code;
    if (its.rope_scaling != ROPE_PLAIN || !(its.rope_theta > 0))
        return err_set(err, ERR_FORMAT, "the rotary embedding of layers with a window is scaled");
    m->config.rope_theta_window = its.rope_theta;
    if (full || window)
        *parameters = full;
    return 0;
}

int hf_rope_read(struct model *m, struct err *err)
{
    const struct json *parameters = json_get(m->text, "rope_parameters"), *scaling = json_get(m->text, "rope_scaling");
    struct model_config *c = &m->config;

    if (m->family->theta_window > 0 && read_window_base(m, &parameters, err))
        return err->code;
    c->rope_theta = m->family->theta > 0 ? m->family->theta : 10000;
    c->rope_attention = 1;
    c->rotary = c->head_dim;
    if (json_may_real(m->text, "rope_theta", &c->rope_theta, err) || read_partial(m, c, m->text, err))
        return err->code;
    struct model_config old = *c;
    if (!json_is_object(parameters))
        return json_is_object(scaling) ? read_scaling(m, c, scaling, err) : 0;
    if (read_scaling(m, c, parameters, err))
        return err->code;
    old.rope_theta = c->rope_theta;
    old.rotary = c->rotary;
    if (!json_is_object(scaling))
        return 0;
    if (read_scaling(m, &old, scaling, err))
        return err->code;
    c->rope_divisors = m->rope_divisors;
    return same_rope(c, &old) ? 0
                              : err_set(err, ERR_FORMAT, "fields 'rope_parameters' and 'rope_scaling' do not agree");
}

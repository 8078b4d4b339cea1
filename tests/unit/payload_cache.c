/* What a payload says of its cache: written, read back, and refused where it makes no sense. */
#include "base/json.h"
#include "variants/payload_cache.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct kv_shape shape = { 30, 9, 3, 64, .dtype = DTYPE_BF16 };

static const struct payload_rope ropes[] = {
    { .theta = 1e4, .dims = 64, .scaling = "default" },
    { .theta = 1000000.5, .dims = 0, .scaling = "linear", .factor = 2.5 },
    { 5e5, 32, "llama3", 32, 1, 4, 0, 8192 },
    { 1e6, 64, "yarn", 4, 1, 32, 1.25, 32768 },
    { 1e4, 48, "longrope", 32, 0, 0, 1.19, 4096 },
};

Test(payload_cache, is_read_as_it_was_written)
{
    for (size_t i = 0; i < sizeof(ropes) / sizeof(*ropes); i++) {
        const struct payload_model model = { "tiny", i == 1 ? "" : "bfloat16", ropes[i] };
        struct payload_cache c;
        struct buf text = { 0 };
        struct err err;
        payload_cache_put(&text, &shape, &model);
        cr_assert_eq(payload_cache_parse(&c, buf_str(&text), &err), 0, "%s", err.msg);
        cr_assert_eq(memcmp(&c.shape, &shape, sizeof(shape)), 0);
        cr_assert_str_eq(c.model_dtype, model.dtype);
        cr_assert_str_eq(c.rope.scaling, ropes[i].scaling);
        cr_assert(c.rope.theta == ropes[i].theta && c.rope.dims == ropes[i].dims && c.rope.factor == ropes[i].factor);
        cr_assert(c.rope.low == ropes[i].low && c.rope.high == ropes[i].high &&
                  c.rope.attention_factor == ropes[i].attention_factor &&
                  c.rope.original_max_position_embeddings == ropes[i].original_max_position_embeddings);
        buf_release(&text);
    }
}

/* The text of a good cache with one piece of it replaced. */
static char *changed(const char *old, const char *new)
{
    static const char good[] =
        "{\"dtype\":\"f32\",\"n_layers\":2,\"n_heads\":6,\"n_kv_heads\":2,\"head_dim\":32,\"model_dtype\":\"float16\","
        "\"rope\":{\"theta\":10000,\"dims\":32,\"scaling\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
        "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}}";
    const char *at = strstr(good, old);
    struct buf text = { 0 };

    cr_assert(at, "%s", old);
    buf_printf(&text, "%.*s%s%s", (int)(at - good), good, new, at + strlen(old));
    char *copy = strdup(buf_str(&text));
    buf_release(&text);
    return copy;
}

Test(payload_cache, refuses_what_makes_no_sense)
{
    static const struct {
        const char *old, *new, *says;
    } bad[] = {
        { "{\"dtype\"", "[\"dtype\"", "metadata 'cache'" },
        { "\"f32\"", "\"f33\"", "'dtype' is 'f33'" },
        { "\"f32\"", "32", "'dtype'" },
        { "\"n_layers\":2", "\"n_layers\":0", "'n_layers' is 0" },
        { "\"n_layers\":2", "\"n_layers\":2147483648", "'n_layers' is 2147483648" },
        { "\"n_layers\":2,", "", "'n_layers'" },
        { "\"n_heads\":6", "\"n_heads\":5", "5 heads cannot share 2 kv heads" },
        { "\"n_kv_heads\":2", "\"n_kv_heads\":0", "'n_kv_heads' is 0" },
        { "\"head_dim\":32", "\"head_dim\":1.5", "'head_dim'" },
        { "\"float16\"", "\"0123456789abcdef\"", "'model_dtype' is too long" },
        { "\"float16\"", "16", "'model_dtype'" },
        { "\"rope\":{", "\"hope\":{", "'rope' is missing" },
        { "\"theta\":10000", "\"theta\":0", "'theta' is not above 0" },
        { "\"theta\":10000", "\"theta\":1e999", "'theta'" },
        { "\"dims\":32", "\"dims\":34", "'dims' is 34, not an even number up to 32" },
        { "\"dims\":32", "\"dims\":31", "'dims' is 31, not an even number up to 32" },
        { "\"dims\":32", "\"dims\":-2", "'dims' is -2" },
        { "\"llama3\"", "\"ntk\"", "'scaling' is 'ntk'" },
        { "\"factor\":8", "\"factor\":-8", "'factor' is not above 0" },
        { "\"low_freq_factor\":1,", "", "'low_freq_factor'" },
        { "\"high_freq_factor\":4,", "", "'high_freq_factor'" },
        { "8192", "0", "'original_max_position_embeddings' is 0" },
    };
    struct payload_cache c;
    struct err err;
    char *good = changed("float16", "bfloat16");

    cr_assert_eq(payload_cache_parse(&c, good, &err), 0, "%s", err.msg);
    free(good);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char *text = changed(bad[i].old, bad[i].new);
        cr_assert_eq(payload_cache_parse(&c, text, &err), ERR_FORMAT, "%s", text);
        cr_assert(strstr(err.msg, bad[i].says), "%s: %s", bad[i].new, err.msg);
        free(text);
    }
}

Test(payload_cache, has_a_length_for_each_layer)
{
    static const char *const bad[] = {
        "", "{}", "[1,2]", "[1,2,3,4]", "[1,2,\"3\"]", "[1,2,-3]", "[1,2,2147483648]", "[1,2,3"
    };
    const int want[] = { 3, 0, 2147483647 };
    struct buf text = { 0 };
    struct err err;
    int got[3];

    payload_lengths_put(&text, want, 3);
    cr_assert_str_eq(buf_str(&text), "[3,0,2147483647]");
    cr_assert_eq(payload_lengths_parse(got, 3, buf_str(&text), &err), 0, "%s", err.msg);
    cr_assert_arr_eq(got, want, sizeof(want));
    buf_release(&text);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_eq(payload_lengths_parse(got, 3, bad[i], &err), ERR_FORMAT, "%s", bad[i]);
        cr_assert(strstr(err.msg, "metadata 'lengths'"), "%s", err.msg);
    }
}

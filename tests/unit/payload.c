/* Payloads: what is written reads back as the variant's rows in BF16, and what is not right is refused. */
#include "base/file.h"
#include "codes/half.h"
#include "variants/packed_payload.h"
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

static const char model[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
enum { T = 100 }; // tokens of every context here
static int32_t ids[T];
static char tokens[DIGEST_HEX];
static const struct payload_model made_by = { .name = "tiny",
                                              .dtype = "bfloat16",
                                              .rope = { .theta = 1e4, .dims = 8, .scaling = "linear", .factor = 2 } };
static const double errors[2 * L] = { 0.25, 0.5, 0, 0.1250001 };
static const struct payload_key key = { model, tokens, ids, "a test", &made_by, errors };

static void make_ids(void)
{
    struct err err;

    for (int i = 0; i < T; i++)
        ids[i] = 7 * i;
    cr_assert_eq(digest_tokens(ids, T, tokens, &err), 0);
}

TestSuite(payload, .init = make_ids);

static uint64_t write_payload(const char *path, const char *config_text, int n_tokens)
{
    struct cache c;
    struct config config = config_of(config_text);
    struct err err;
    uint64_t bytes;

    cache_init(&c, n_tokens);
    struct made m = made_of(&c, &config);
    cr_assert_eq(packed_payload_write(path, &m.v, &key, &bytes, &err), 0, "%s", err.msg);
    made_release(&m);
    cache_release(&c);
    return bytes;
}

static const void *tensor(const struct packed_payload *p, int layer, const char *part)
{
    char name[64];

    snprintf(name, sizeof(name), "layers.%d.%s", layer, part);
    const struct st_tensor *t = safetensors_find(&p->file.st, name);
    cr_assert(t, "%s", name);
    return t->at;
}

static void expect_bf16(const void *stored, size_t first, const float *rows, int n)
{
    for (int i = 0; i < n * K; i++) {
        uint16_t b;
        memcpy(&b, (const char *)stored + 2 * (first * K + (size_t)i), 2);
        cr_assert_eq(bf16_to_f32(b), rows[i]); // the number that answers are computed with
    }
}

/* Rows of a head that the quantiser's part `name`, or that without one, holds in full. */
static int rows_in_full(const struct made *m, int l, int g, const char *name)
{
    const struct config_stage *quantise = &m->v.config->stage[METHOD_QUANTISE];
    struct head_part part[HEAD_PART_MAX];
    int n = m->v.rows[l * G + g].n, i = 0;

    if (!quantise->method)
        return n;
    if (!quantise->method->pack->parts)
        return 0;
    quantise->method->pack->parts(quantise->value, m->v.shape.head_dim, n, part);
    while (strcmp(part[i].name, name) != 0)
        i++;
    return (int)part[i].rows;
}

/* The payload has the variant's rows in full, its positions, its lengths. */
static void expect_payload(const struct packed_payload *p, const struct made *m)
{
    bool packed = m->v.config->stage[METHOD_QUANTISE].method, ragged = m->v.config->ragged;
    const int32_t *kept = m->v.kept;

    for (int l = 0; l < L; l++) {
        size_t n_k = 0, n_v = 0, sum = 0;
        int n[G];
        packed_payload_lengths(p, l, n);
        for (int g = 0; g < G; g++) {
            int h = l * G + g, k = rows_in_full(m, l, g, "k"), v = rows_in_full(m, l, g, "v");
            expect_bf16(tensor(p, l, "k"), n_k, m->k[h] + (n[g] - k) * K, k);
            expect_bf16(tensor(p, l, "v"), n_v, m->rows_v[h] + (n[g] - v) * K, v);
            cr_assert_eq(n[g], m->v.rows[h].n);
            n_k += (size_t)k;
            n_v += (size_t)v;
            sum += (size_t)n[g];
        }
        if (ragged)
            cr_assert_arr_eq(tensor(p, l, "lengths"), n, sizeof(n));
        if (kept && !packed)
            cr_assert_arr_eq(tensor(p, l, "positions"), kept, sum * 4);
        kept += kept ? sum : 0;
    }
    cr_assert_eq(p->file.st.n, 1 + L * (m->v.n_parts + (kept && !packed)));
    cr_assert_arr_eq(p->file.tokens->at, ids, sizeof(ids));
}

/* The payload says what it was made of; the lengths of layers only where they are not all the context's, nor the
 * heads' own. */
static void expect_origin(const struct packed_payload *p, const struct made *m)
{
    const struct payload_origin *o = &p->file.origin;
    bool drops = m->v.rows[0].n != m->v.n_tokens, ragged = m->v.config->ragged;

    cr_assert_str_eq(o->producer, "a test");
    cr_assert_str_eq(o->model_name, "tiny");
    cr_assert_str_eq(o->errors, "[0.25,0.5,0,0.125]");
    cr_assert_eq(memcmp(&p->shape, &m->v.shape, sizeof(p->shape)), 0);
    cr_assert_str_eq(p->cache.model_dtype, "bfloat16");
    cr_assert_str_eq(p->cache.rope.scaling, "linear");
    cr_assert(p->cache.rope.theta == 1e4 && p->cache.rope.dims == 8 && p->cache.rope.factor == 2);
    cr_assert_eq(o->lengths != NULL, drops && !ragged, "%s", m->v.config->name);
    if (o->lengths) {
        char text[64];
        snprintf(text, sizeof(text), "[%d,%d]", m->v.rows[0].n, m->v.rows[G].n);
        cr_assert_str_eq(o->lengths, text);
    }
}

Test(payload, holds_the_rows_of_a_variant)
{
    static const char *const name[] = { "none",
                                        "keydiff:drop=0.6",
                                        "kivi:bits=4",
                                        "keydiff:drop=0.2+kivi:bits=2",
                                        "pyramidkv:drop=0.5:window=4",
                                        "adakv+h2o:drop=0.5",
                                        "adakv+h2o:drop=0",
                                        "adakv+tova:drop=0.2:heads=own+kivi:bits=4",
                                        "adakv:safeguard=0+pyramidkv:drop=0.3:window=4+kivi:bits=2",
                                        "cachegen",
                                        "keydiff:drop=0.2+cachegen:cdf=chunk",
                                        "adakv+h2o:drop=0.5+cachegen",
                                        "fp8",
                                        "nvfp4",
                                        "turboquant:bits=3:values=uniform",
                                        "adakv+h2o:drop=0.5+int4:group=32",
                                        "adakv+h2o:drop=0.5+fp8:scale=token",
                                        "kvzip:drop=0.5",
                                        "kvzip:drop=0.97", // 9 of head 0, 3 of head 1, none of layer 1
                                        "kvzip:drop=0.97+kivi:bits=4",
                                        "kvzip:drop=0.333:over=layer",
                                        "kvzip:drop=0.4+kivi:bits=2",
                                        "chunkkv:length=3+h2o:drop=0.5",
                                        "chunkkv:length=7+knorm:drop=0",
                                        "chunkkv:length=7+h2o:drop=0.5+cachegen",
                                        "impress:load=0.1:chunk=3",
                                        "impress:load=0.1:chunk=3:reorder=yes",
                                        "impress:load=1:reorder=yes" };
    enum { NAMES = sizeof(name) / sizeof(*name) };
    static const char *const dtype[] = { "f32", "bf16" };
    char path[] = "/tmp/evp-payload-XXXXXX";
    struct cache c;
    struct err err;

    close(mkstemp(path));
    for (int i = 0; i < 2 * NAMES; i++) {
        struct config config = config_of(name[i / 2]);
        cr_assert(cache_open(&c, "fenced", dtype[i % 2], 100));
        for (int j = 0; j < 100 * K; j++)
            c.k[3][j] *= 1.01F, c.v[3][j] *= 1.01F; // no numbers of BF16
        cache_write(&c);
        struct made m = made_of(&c, &config);
        struct packed_payload p;
        uint64_t bytes, on_disk;
        cr_assert_eq(packed_payload_write(path, &m.v, &key, &bytes, &err), 0, "%s", err.msg);
        cr_assert(file_size(path, &on_disk, &err) == 0 && on_disk == bytes);
        cr_assert((double)bytes <= 1.02 * (double)m.v.bytes + 32768, "%s: %llu for %lld", config.name,
                  (unsigned long long)bytes, (long long)m.v.bytes);
        cr_assert_eq(packed_payload_open(&p, path, PAYLOAD_WHOLE, &err), 0, "%s", err.msg);
        cr_assert(p.bytes == m.v.bytes && p.file.n_tokens == 100 && p.shape.n_layers == L && p.shape.n_kv_heads == G);
        cr_assert(strcmp(p.config.name, config.name) == 0 && strcmp(p.file.model_digest, model) == 0 &&
                  strcmp(p.file.token_digest, tokens) == 0);
        expect_payload(&p, &m);
        expect_origin(&p, &m);
        packed_payload_close(&p);
        made_release(&m);
        cache_release(&c);
    }
    unlink(path);
}

static void write_and_open(const char *path, const struct made *m, struct packed_payload *p)
{
    struct err err;

    cr_assert_eq(packed_payload_write(path, &m->v, &key, NULL, &err), 0, "%s", err.msg);
    cr_assert_eq(packed_payload_open(p, path, PAYLOAD_WHOLE, &err), 0, "%s", err.msg);
}

/* Numbers of bits `bits` from a payload, as the reader of a serving cache would take them: along its last axis, 32 /
 * bits codes a word, the first in the lowest bits. */
static float unpacked(const struct packed_payload *p, int layer, const char *side, size_t i)
{
    char name[3][16];
    uint32_t word;
    uint16_t scale, zero;

    for (int j = 0; j < 3; j++)
        snprintf(name[j], sizeof(name[j]), "%s_%s", side, (const char *[]){ "codes", "scales", "zeros" }[j]);
    memcpy(&word, (const char *)tensor(p, layer, name[0]) + i / 16 * 4, 4);
    memcpy(&scale, (const char *)tensor(p, layer, name[1]) + i / 32 * 2, 2);
    memcpy(&zero, (const char *)tensor(p, layer, name[2]) + i / 32 * 2, 2);
    return (float)(word >> i % 16 * 2 & 3) * f16_to_f32(scale) + f16_to_f32(zero);
}

/* The packed parts are enough to get the variant's rows back, also those of heads of different lengths. */
Test(payload, of_a_quantiser_unpacks_to_the_variant)
{
    static const char *const name[] = { "kivi:bits=2", "adakv+h2o:drop=0.3+kivi:bits=2", "kvzip:drop=0.5+kivi:bits=2",
                                        "kvzip:drop=0.97+kivi:bits=2" };
    char path[] = "/tmp/evp-payload-XXXXXX";
    struct cache c;
    struct packed_payload p;

    close(mkstemp(path));
    cache_init(&c, 100);
    for (int i = 0; i < 4; i++) {
        struct config config = config_of(name[i]);
        struct made m = made_of(&c, &config);
        write_and_open(path, &m, &p);
        for (int l = 0; l < L; l++) {
            size_t at_k = 0, at_v = 0; // numbers of the heads before
            for (int g = 0; g < G; g++) {
                int n = m.v.rows[l * G + g].n, keys = n - n % 32, values = n > 32 ? n - 32 : 0;
                for (int j = 0; j < keys * K; j++) // (K, keys)
                    cr_assert_eq(unpacked(&p, l, "k", at_k + (size_t)j), m.k[l * G + g][j % keys * K + j / keys]);
                for (int j = 0; j < values * K; j++) // (values, K)
                    cr_assert_eq(unpacked(&p, l, "v", at_v + (size_t)j), m.rows_v[l * G + g][j]);
                at_k += (size_t)(keys * K);
                at_v += (size_t)(values * K);
            }
        }
        packed_payload_close(&p);
        made_release(&m);
    }
    cache_release(&c);
    unlink(path);
}

/* What is kept and not read is there, too: with the rows that are read, every row of the cache, once. */
Test(payload, keeps_what_it_does_not_read)
{
    struct config config = config_of("impress:load=0.1:chunk=3:reorder=yes:probe=1");
    char path[] = "/tmp/evp-payload-XXXXXX";
    struct cache c;
    struct packed_payload p;

    close(mkstemp(path));
    cache_init(&c, 100);
    struct made m = made_of(&c, &config);
    write_and_open(path, &m, &p);
    for (int l = 0; l < L; l++) {
        size_t rest = 0;
        const int32_t *order = tensor(&p, l, "order");
        for (int g = 0; g < G; g++) {
            const int32_t *kept = (const int32_t *)tensor(&p, l, "positions") + (ptrdiff_t)g * m.v.rows[l * G].n;
            for (int t = 0, taken = 0; t < 100; t++) {
                if (taken < m.v.rows[l * G].n && kept[taken] == t) {
                    taken++;
                    continue;
                }
                expect_bf16(tensor(&p, l, "k_rest"), rest, c.k[l * G + g] + (ptrdiff_t)t * K, 1);
                expect_bf16(tensor(&p, l, "v_rest"), rest++, c.v[l * G + g] + (ptrdiff_t)t * K, 1);
            }
        }
        for (int i = 1; i < 100; i++) { // the probe is head 0
            const float *sums = c.column_sums + (ptrdiff_t)l * G * 100;
            cr_assert(sums[order[i]] <= sums[order[i - 1]]);
        }
    }
    packed_payload_close(&p);
    made_release(&m);
    cache_release(&c);
    unlink(path);
}

/* The same of a quantiser that works in host memory, from copies of the tensors. */
Test(payload, of_streams_decodes_to_the_variant)
{
    static const char *const name[] = { "cachegen", "cachegen:cdf=chunk", "adakv+h2o:drop=0.3+cachegen" };
    char path[] = "/tmp/evp-payload-XXXXXX";
    struct cache c;
    struct packed_payload p;
    struct err err;

    close(mkstemp(path));
    cache_init(&c, 100);
    for (int i = 0; i < 3; i++) {
        struct config config = config_of(name[i]);
        const struct config_stage *stage = &config.stage[METHOD_QUANTISE];
        struct made m = made_of(&c, &config);
        write_and_open(path, &m, &p);
        for (int l = 0; l < L; l++) {
            struct packed_part part[PART_MAX];
            int n[G];
            packed_payload_lengths(&p, l, n);
            const struct layer_lengths lengths = { l, n, 0, 100 };
            int n_parts = stage->method->pack->coder->parts(stage->value, &p.shape, &lengths, part);
            for (int j = 0; j < n_parts; j++) {
                char tensor_name[64];
                snprintf(tensor_name, sizeof(tensor_name), "layers.%d.%s", l, part[j].name);
                const struct st_tensor *t = safetensors_find(&p.file.st, tensor_name);
                part[j].dim[0] = t->dim[0];
                part[j].at = memcpy(malloc(t->bytes + 1), t->at, t->bytes);
            }
            float *x = malloc((size_t)(n[0] + n[1]) * K * sizeof(*x));
            for (int side = 0; side < 2; side++) {
                const struct coded_rows rows = { &p.shape, stage->value, lengths, side == 0, x, part };
                float *const *want = (side ? m.rows_v : m.k) + l * G;
                cr_assert_eq(stage->method->pack->coder->decode(&rows, &err), 0, "%s", err.msg);
                cr_assert_arr_eq(x, want[0], (size_t)n[0] * K * sizeof(*x));
                cr_assert_arr_eq(x + n[0] * K, want[1], (size_t)n[1] * K * sizeof(*x));
            }
            free(x);
            for (int j = 0; j < n_parts; j++)
                free(part[j].at);
        }
        packed_payload_close(&p);
        made_release(&m);
    }
    cache_release(&c);
    unlink(path);
}

/* ---- files that are not right -------------------------------------------- */

struct image {
    char *at;
    size_t n;
};

static struct image image_of(const char *config, int n_tokens)
{
    char path[] = "/tmp/evp-payload-XXXXXX";
    struct buf text = { 0 };
    struct err err;

    close(mkstemp(path));
    write_payload(path, config, n_tokens);
    cr_assert_eq(file_read(&text, path, SIZE_MAX / 4, &err), 0);
    unlink(path);
    return (struct image){ text.at, text.n };
}

static void expect_refused(const struct image *image, size_t n, const char *says)
{
    struct packed_payload p;
    struct err err;

    cr_assert_eq(packed_payload_parse(&p, image->at, n, PAYLOAD_WHOLE, &err), ERR_FORMAT, "%s", says);
    cr_assert(strstr(err.msg, says), "'%s' is not in: %s", says, err.msg);
    cr_assert(!p.file.st.tensor);
}

/* Puts `to` over the first `from`, which is as long. */
static void expect_refused_with(const char *config, const char *from, const char *to, const char *says)
{
    struct image image = image_of(config, 100);
    char *at = memmem(image.at, image.n, from, strlen(from));

    cr_assert(at && strlen(from) == strlen(to), "%s", from);
    memcpy(at, to, strlen(to));
    expect_refused(&image, image.n, says);
    free(image.at);
}

Test(payload, refuses_what_does_not_fit_together)
{
    static const char *const drop = "keydiff:drop=0.6", *const quantised = "kivi:bits=2";

    expect_refused_with(drop, "\"payload\"", "\"payl0ad\"", "not a payload");
    expect_refused_with(drop, "\"version\":\"2\"", "\"version\":\"0\"", "version '0'");
    expect_refused_with(drop, tokens, "AAAAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "SHA-256");
    expect_refused_with(drop, tokens, model, "'tokens' has digest");
    expect_refused_with(drop, "keydiff:drop=0.6", "keydiff:drop=0.7", "the shape of tensor");
    expect_refused_with(drop, "keydiff:drop=0.6", "keydifg:drop=0.6", "no method 'keydifg'");
    expect_refused_with(drop, "\"n_tokens\":\"100\"", "\"n_tokens\":\"-10\"",
                        "is '-10', not a number from 1 to 2147483647");
    expect_refused_with(drop, "\"n_tokens\":\"100\"", "\"n_tokens\":\"101\"", "'tokens' is not I32 of shape [101]");
    expect_refused_with(drop, "\"tokens\":{\"dtype\":\"I32\"", "\"tokens\":{\"dtype\":\"F32\"", "'tokens' is not I32");
    expect_refused_with(drop, "\"tokens\":{", "\"t0kens\":{", "'tokens' is missing");
    expect_refused_with(drop, "\"version\":\"2\"", "\"version\":\"1\"", "version '1'");
    expect_refused_with(drop, "\"version\":\"2\"", "\"version\":\"3\"", "version '3'; this program reads version 2");
    expect_refused_with(drop, model, "AAAAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "SHA-256");
    expect_refused_with(drop, "\"layers.1.v\":{\"dtype\":\"BF16\"", "\"layers.1.w\":{\"dtype\":\"BF16\"",
                        "'layers.1.v' is missing");
    expect_refused_with(drop, "\"layers.1.v\":{\"dtype\":\"BF16\"", "\"layers.1.v\":{\"dtype\":\"F16\" ",
                        "is F16, not BF16");
    expect_refused_with(quantised, "[2,32,6]", "[2,6,32]", "the shape of tensor");
    expect_refused_with(quantised, "layers.1.v_zeros\":{", "layers.2.v_zeros\":{", "'layers.1.v_zeros' is missing");
    expect_refused_with(quantised, "layers.1.k\":{", "layers.7.k\":{", "metadata 'cache' has 2 layers, the tensors 1");
}

Test(payload, refuses_what_it_says_of_another_cache)
{
    static const char *const pyramid = "pyramidkv:drop=0.5:window=4";

    expect_refused_with("none", "\\\"n_layers\\\":2", "\\\"n_layers\\\":3",
                        "metadata 'cache' has 3 layers, the tensors 2");
    expect_refused_with("none", "\\\"n_kv_heads\\\":2", "\\\"n_kv_heads\\\":3",
                        "'cache' has 3 kv heads of 32 columns, the tensors 2 of 32");
    expect_refused_with("none", "\\\"head_dim\\\":32", "\\\"head_dim\\\":33", "of 33 columns");
    expect_refused_with("none", "linear", "cubic ", "metadata 'cache': 'rope': field 'scaling' is 'cubic '");
    expect_refused_with(pyramid, "\"lengths\":\"[", "\"lengths\":\"{", "metadata 'lengths'");
    expect_refused_with(pyramid, "\"lengths\":\"[9", "\"lengths\":\"[8", "'lengths' has 8");
}

/* Configs whose lengths depend on the data carry them; nothing is allocated or read by them before they are checked. */
Test(payload, refuses_lengths_that_do_not_add_up)
{
    static const char *const ragged = "adakv+h2o:drop=0.5";
    static const struct {
        int32_t head[2];
        const char *says;
    } bad[] = { { { 50, 51 }, "adds up to 101 tokens, but adakv+h2o:drop=0.5 keeps 100" },
                { { 0, 0 }, "adds up to 0 tokens" },
                { { 101, -1 }, "'layers.1.lengths' gives a head 101 of 100 tokens" },
                { { -1, 101 }, "'layers.1.lengths' gives a head -1 of 100 tokens" },
                { { INT32_MAX, INT32_MIN }, "gives a head 2147483647" },
                { { INT32_MIN, INT32_MAX }, "gives a head -2147483648" } };
    struct image image = image_of(ragged, 100);
    struct packed_payload p;
    struct err err;
    int n[G];

    cr_assert_eq(packed_payload_parse(&p, image.at, image.n, PAYLOAD_WHOLE, &err), 0, "%s", err.msg);
    packed_payload_lengths(&p, 1, n);
    char *at = (char *)(uintptr_t)tensor(&p, 1, "lengths");
    packed_payload_close(&p);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        memcpy(at, bad[i].head, sizeof(bad[i].head));
        expect_refused(&image, image.n, bad[i].says);
    }
    memcpy(at, (int[]){ n[0] - 1, n[1] + 1 }, sizeof(n)); // the sum is right: positions and checksums are not
    cr_assert_eq(packed_payload_parse(&p, image.at, image.n, PAYLOAD_HEADER, &err), 0, "%s", err.msg);
    packed_payload_close(&p);
    expect_refused(&image, image.n, "the file is damaged");
    free(image.at);
    expect_refused_with("chunkkv+h2o:drop=0.2", "chunkkv+h2o:drop=0.2", "chunkkv+h2o:drop=0.9",
                        "adds up to 160 tokens, but chunkkv+h2o:drop=0.9 keeps at most 40");
    expect_refused_with("impress:load=0.1:chunk=3", "layers.1.k_rest\":{", "layers.1.k_rent\":{",
                        "'layers.1.k_rest' is missing");
    expect_refused_with(ragged, "layers.1.lengths\":{\"dtype\":\"I32\",", "layers.1.lengths\":{\"dtype\":\"F32\",",
                        "'layers.1.lengths' is F32, not I32");
    expect_refused_with(ragged, "layers.1.lengths\":{", "layers.1.lengthz\":{", "'layers.1.lengths' is missing");
    expect_refused_with(ragged, "layers.0.lengths\":{", "layers.0.lengthz\":{",
                        "no tensor 'layers.0.lengths' of shape [heads]");
    expect_refused_with(ragged, ragged, "keydiff:drop=0.500",
                        "no tensor 'layers.0.k' of shape [heads, rows, head_dim]");
    expect_refused_with("snapkv:drop=0.5:window=9", "snapkv:drop=0.5:window=9", "adakv+snapkv:drop=0.5000",
                        "no tensor 'layers.0.lengths'");
}

/* The sizes of streams that depend on the data say how many bytes there are. */
Test(payload, refuses_streams_of_another_size)
{
    struct image image = image_of("cachegen", 100);
    struct packed_payload p;
    struct err err;

    cr_assert_eq(packed_payload_parse(&p, image.at, image.n, PAYLOAD_WHOLE, &err), 0, "%s", err.msg);
    char *at = (char *)(uintptr_t)tensor(&p, 1, "v_sizes");
    packed_payload_close(&p);
    at[2]++;
    expect_refused(&image, image.n, "the size of tensor 'layers.1.v_streams' is not what its streams take");
    free(image.at);
    expect_refused_with("cachegen", "layers.1.v_streams\":{\"dtype\":\"U8\"", "layers.1.v_streams\":{\"dtype\":\"I8\"",
                        "is I8, not U8");
    expect_refused_with("cachegen", "layers.0.k_sizes\":{", "layers.9.k_sizes\":{", "'layers.0.k_sizes' is missing");
    expect_refused_with("cachegen", "\"cachegen\"", "\"cachegem\"", "no method 'cachegem'");
}

/* kvzip's layers share: only all lengths together are known. */
Test(payload, refuses_lengths_of_all_layers_that_do_not_add_up)
{
    struct image image = image_of("kvzip:drop=0.5", 100);
    struct packed_payload p;
    struct err err;
    int n[L][G];

    cr_assert_eq(packed_payload_parse(&p, image.at, image.n, PAYLOAD_WHOLE, &err), 0, "%s", err.msg);
    for (int l = 0; l < L; l++)
        packed_payload_lengths(&p, l, n[l]);
    cr_assert_eq(n[0][0] + n[0][1] + n[1][0] + n[1][1], L * G * 50);
    cr_assert_neq(n[0][0] + n[0][1], G * 50, "as if each layer had its own");
    packed_payload_close(&p);
    free(image.at);
    expect_refused_with("kvzip:drop=0.5", "kvzip:drop=0.5", "kvzip:drop=0.4",
                        "the tensors 'layers.N.lengths' add up to 200 tokens, but kvzip:drop=0.4 keeps 240");
    expect_refused_with("kvzip:drop=0.5:over=layer", "kvzip:drop=0.5:over", "kvzip:drop=0.4:over",
                        "tensor 'layers.0.lengths' adds up to 100 tokens, but kvzip:drop=0.4:over=layer keeps 120");
}

/* The last position may be n_tokens - 1, the first 0. */
Test(payload, takes_positions_up_to_their_limits)
{
    for (int off = -1; off <= 1; off++) {
        struct cache c;
        struct config config = config_of("keydiff:drop=0.6");
        char path[] = "/tmp/evp-payload-XXXXXX";
        struct packed_payload p;
        struct err err;
        close(mkstemp(path));
        cache_init(&c, 100);
        struct made m = made_of(&c, &config);
        int n = m.v.rows[0].n;
        for (int i = 0; i < n; i++)
            m.v.kept[i] = i; // from 0
        m.v.kept[n - 1] = 99 + off;
        cr_assert_eq(packed_payload_write(path, &m.v, &key, NULL, &err), 0, "%s", err.msg);
        int code = packed_payload_open(&p, path, PAYLOAD_WHOLE, &err);
        cr_assert_eq(code, off > 0 ? ERR_FORMAT : 0, "%s", code ? err.msg : "good");
        if (!code)
            packed_payload_close(&p);
        m.v.kept[0] = -1;
        m.v.kept[n - 1] = 99;
        cr_assert_eq(packed_payload_write(path, &m.v, &key, NULL, &err), 0, "%s", err.msg);
        cr_assert_eq(packed_payload_open(&p, path, PAYLOAD_WHOLE, &err), ERR_FORMAT);
        made_release(&m);
        cache_release(&c);
        unlink(path);
    }
}

/* ---- damage -------------------------------------------------------------- */

Test(payload, refuses_damaged_and_cut_files)
{
    struct image image = image_of("keydiff:drop=0.6", 100);

    for (size_t n = 0; n < image.n; n += image.n / 37)
        expect_refused(&image, n, "");
    image.at[image.n - 1] ^= 1; // the last position, which the checksum covers
    expect_refused(&image, image.n, "the file is damaged");
    free(image.at);
}

/* Positions are checked even where the checksum is right. */
Test(payload, refuses_positions_that_do_not_rise)
{
    static const char *const name[] = { "keydiff:drop=0.6", "adakv+h2o:drop=0.6" };
    char path[] = "/tmp/evp-payload-XXXXXX";

    close(mkstemp(path));
    for (int i = 0; i < 2; i++) {
        struct cache c;
        struct config config = config_of(name[i]);
        struct packed_payload p;
        struct err err;
        cache_init(&c, 100);
        struct made m = made_of(&c, &config);
        int32_t *last_head = m.v.kept + m.v.rows[0].n + m.v.rows[1].n + m.v.rows[2].n;
        last_head[4] = last_head[3];
        cr_assert_eq(packed_payload_write(path, &m.v, &key, NULL, &err), 0, "%s", err.msg);
        cr_assert_eq(packed_payload_open(&p, path, PAYLOAD_HEADER, &err), 0, "%s", err.msg);
        packed_payload_close(&p);
        cr_assert_eq(packed_payload_open(&p, path, PAYLOAD_WHOLE, &err), ERR_FORMAT);
        cr_assert(strstr(err.msg, "'layers.1.positions' does not ascend"), "%s", err.msg);
        made_release(&m);
        cache_release(&c);
    }
    unlink(path);
}

Test(payload, is_the_same_bytes_twice)
{
    struct image a = image_of("snapkv:drop=0.5:window=16+kivi:bits=4", 100);
    struct image b = image_of("snapkv:drop=0.5:window=16+kivi:bits=4", 100);

    cr_assert(a.n == b.n && memcmp(a.at, b.at, a.n) == 0);
    free(a.at);
    free(b.at);
}

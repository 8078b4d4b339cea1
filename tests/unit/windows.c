/* Caches with layers that keep a window: methods change the other layers as if these were alone, and payloads hold the
 * window's rows. */
#include "base/file.h"
#include "codes/half.h"
#include "formats/payload_prefix.h"
#include "loader/libevicpress/evp_payload.h"
#include "tests/unit/cache.h"
#include "variants/packed_payload.h"
#include "variants/variant_error.h"

#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

enum { T = 100, WINDOW = 24 };

static const char *const every[] = { "none",
                                     "knorm:drop=0.3",
                                     "keydiff:drop=0.7:block=16",
                                     "snapkv:drop=0.7:window=16",
                                     "pyramidkv:drop=0.5:window=4",
                                     "tova:drop=0.5:heads=own",
                                     "h2o:drop=0.6",
                                     "expected_attention:drop=0.5:n_future=40",
                                     "criticalkv+snapkv:drop=0.5:window=4",
                                     "adakv+tova:drop=0.9",
                                     "kvzip:drop=0.5",
                                     "kvzip:drop=0.333:over=layer+kivi:bits=4",
                                     "chunkkv:length=7+h2o:drop=0.5",
                                     "impress:load=0.2:chunk=3",
                                     "arkv:drop=0.5:window=8",
                                     "h2o:drop=0.5+cam:window=16",
                                     "kivi:bits=2",
                                     "keydiff:drop=0.2+kivi:bits=4",
                                     "cachegen",
                                     "adakv+h2o:drop=0.5+cachegen",
                                     "fp8",
                                     "turboquant:bits=3:values=uniform" };
enum { EVERY = sizeof(every) / sizeof(*every) };

/* The cache's first layer as the only one; or as number `full` of three, of which the others have a window and the
 * second layer's rows. */
static void set_shape(struct cache *c, int full, int window)
{
    static struct kv_rows rows[3 * G];

    for (int h = 0; h < 3 * G; h++)
        rows[h] = c->rows[h < G ? h : G + h % G];
    c->full.rows = rows;
    c->full.shape.n_layers = 1;
    c->full.shape.n_windowed = full < 0 ? 0 : 2;
    c->full.shape.window = window;
    c->full.shape.windowed[0] = full < 0 ? 0 : 7 & ~((uint64_t)1 << full);
}

static void expect_same_heads(const struct variant *a, const struct variant *b, const struct made *m,
                              const struct made *n)
{
    int pairs = 0;

    for (int h = 0; h < G; h++) {
        size_t bytes = (size_t)a->rows[h].n * K * sizeof(float);
        cr_assert_eq(a->rows[h].n, b->rows[h].n);
        cr_assert_arr_eq(m->k[h], n->k[h], bytes, "%s", a->config->name);
        cr_assert_arr_eq(m->rows_v[h], n->rows_v[h], bytes, "%s", a->config->name);
        pairs += a->rows[h].n;
    }
    cr_assert_eq(!a->kept, !b->kept);
    if (a->kept)
        cr_assert_arr_eq(a->kept, b->kept, (size_t)pairs * sizeof(*a->kept));
}

/* As made_of(), with the rows of two layers. */
static struct made made_with(struct cache *c, const struct config *config, struct err *err)
{
    struct made m = { 0 };
    struct compressor *maker = compressor_new(&c->full, &config, 1, err);

    cr_assert(maker, "%s", err->msg);
    cr_assert_eq(compressor_variant(maker, config, VARIANT_PAYLOAD, &m.v, err), 0, "%s", err->msg);
    for (int h = 0; h < (c->full.shape.n_windowed ? 2 : 1) * G; h++) {
        size_t bytes = (size_t)m.v.rows[h].n * K * sizeof(float);
        m.k[h] = malloc(bytes + 1);
        m.rows_v[h] = malloc(bytes + 1);
        cr_assert_eq(c->be->read(c->be, m.k[h], m.v.rows[h].k, bytes, err), 0);
        cr_assert_eq(c->be->read(c->be, m.rows_v[h], m.v.rows[h].v, bytes, err), 0);
    }
    compressor_free(maker);
    return m;
}

Test(windows, methods_change_the_other_layers_alone)
{
    for (int i = 0; i < EVERY; i++) {
        const struct config config = config_of(every[i]);
        struct made alone, beside;
        struct cache c;
        struct err err;
        cache_init(&c, T);
        set_shape(&c, -1, 0);
        alone = made_with(&c, &config, &err);
        set_shape(&c, i % 3, WINDOW);
        beside = made_with(&c, &config, &err);
        expect_same_heads(&alone.v, &beside.v, &alone, &beside);
        for (int h = G; h < 2 * G; h++) {
            cr_assert_eq(beside.v.rows[h].n, WINDOW);
            cr_assert_arr_eq(beside.k[h], c.k[h] + (T - WINDOW) * K, WINDOW * K * sizeof(float), "%s", every[i]);
            cr_assert_arr_eq(beside.rows_v[h], c.v[h] + (T - WINDOW) * K, WINDOW * K * sizeof(float));
        }
        int64_t held = (int64_t)2 * WINDOW * G * K * 4, known = config_bytes_known(&config, &c.full.shape, T);
        cr_assert(beside.v.bytes == alone.v.bytes + held && beside.v.bytes_read == alone.v.bytes_read + held);
        cr_assert(known < 0 || known == beside.v.bytes, "%s", every[i]);
        cr_assert_eq(kv_bytes(&c.full.shape, T), (int64_t)(T + 2 * WINDOW) * G * K * 4);
        cr_assert_float_eq(beside.v.size_frac, (double)beside.v.bytes / ((T + 2 * WINDOW) * G * K * 4), 1e-12);
        cr_assert_float_eq(beside.v.keep_frac, (alone.v.keep_frac * T + 2 * WINDOW) / (T + 2 * WINDOW), 1e-12);
        cr_assert(!config.knows_rows || fabs(beside.v.keep_frac - config_keep_frac(&config, &c.full.shape, T)) < 1e-12);
        made_release(&alone);
        made_release(&beside);
        cache_release(&c);
    }
}

/* A context within the window; and where every layer has one, it is as if none had, or nothing is left to change. */
Test(windows, may_hold_all_of_a_context)
{
    const struct config none = config_of("none"), drop = config_of("adakv+snapkv:drop=0.5:window=4+kivi:bits=2");
    struct cache c;
    struct err err;

    cache_init(&c, T);
    set_shape(&c, 0, T + 1);
    struct made m = made_with(&c, &none, &err);
    cr_assert(m.v.rows[G].n == T && m.v.keep_frac == 1 && m.v.size_frac == 1);
    made_release(&m);
    c.full.shape.n_layers = 0;
    c.full.shape.n_windowed = 3;
    c.full.shape.windowed[0] = 7;
    c.full.shape.window = WINDOW;
    cr_assert_eq(kv_shape_of(&c.full.shape, WINDOW / 2).n_layers, 3);
    cr_assert_eq(kv_shape_of(&c.full.shape, WINDOW / 2 + 1).n_layers, 0);
    m = made_with(&c, &drop, &err);
    cr_assert(m.v.rows[0].n == WINDOW && m.v.keep_frac == 1 && m.v.size_frac == 1);
    cr_assert_eq(config_bytes_known(&none, &c.full.shape, T), m.v.bytes);
    made_release(&m);
    cache_release(&c);
}

Test(windows, come_last_in_a_cache)
{
    const struct kv_shape s = { .n_layers = 2, .n_windowed = 5, .windowed = { 0x5B } }; // all but 2 and 5
    const int place[] = { 2, 3, 0, 4, 5, 1, 6 };

    for (int l = 0; l < 7; l++)
        cr_assert(kv_place(&s, l) == place[l] && kv_number(&s, place[l]) == l, "%d", l);
}

/* ---- payloads ------------------------------------------------------------- */

static const char digest[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const struct payload_model model = { "tiny", "bfloat16", { .theta = 1e4, .dims = 8, .scaling = "default" } };

/* The file of a variant, in which layer `full` of three has no window. */
static struct buf image_of(const char *text, int full, int window)
{
    char path[] = "/tmp/evp-windows-XXXXXX", tokens[DIGEST_HEX];
    const struct config config = config_of(text);
    int32_t ids[T] = { 0 };
    struct buf image = { 0 };
    struct cache c;
    struct err err;
    double errors[2];

    close(mkstemp(path));
    cache_init(&c, T);
    set_shape(&c, full, window);
    struct made m = made_with(&c, &config, &err);
    cr_assert_eq(digest_tokens(ids, T, tokens, &err), 0);
    struct payload_key key = { digest, tokens, ids, "a test", &model, NULL };
    if (config.stage[METHOD_QUANTISE].method) {
        cr_assert_eq(variant_errors(&c.full, &m.v, errors, &err), 0, "%s", err.msg);
        key.errors = errors;
    }
    cr_assert_eq(packed_payload_write(path, &m.v, &key, NULL, &err), 0, "%s", err.msg);
    cr_assert_eq(file_read(&image, path, SIZE_MAX / 4, &err), 0);
    unlink(path);
    made_release(&m);
    cache_release(&c);
    return image;
}

Test(windows, are_in_payloads)
{
    for (int i = 0; i < EVERY; i++) {
        struct buf image = image_of(every[i], i % 3, WINDOW);
        struct packed_payload p;
        struct cache c;
        struct err err;
        char name[32];
        int n[G];
        cr_assert_eq(packed_payload_parse(&p, image.at, image.n, PAYLOAD_WHOLE, &err), 0, "%s: %s", every[i], err.msg);
        cr_assert(p.shape.n_layers == 1 && p.shape.n_windowed == 2 && p.shape.window == WINDOW &&
                  p.shape.windowed[0] == (7 & ~((uint64_t)1 << i % 3)));
        packed_payload_lengths(&p, 1, n);
        cr_assert(n[0] == WINDOW && n[1] == WINDOW);
        snprintf(name, sizeof(name), "layers.%d.v", (i + 1) % 3);
        const struct st_tensor *v = safetensors_find(&p.file.st, name);
        cr_assert(v && v->n_dims == 3 && v->dim[0] == G && v->dim[1] == WINDOW && v->dim[2] == K);
        cache_init(&c, T);
        for (int at = 0; at < G * WINDOW * K; at++) {
            uint16_t bits;
            memcpy(&bits, (const char *)v->at + 2 * at, 2);
            int head = at / (WINDOW * K);
            cr_assert_eq(bf16_to_f32(bits), c.v[G + head][(T - WINDOW) * K + at % (WINDOW * K)]);
        }
        cr_assert_eq(payload_check_parts(&p.file, &err), ERR_FORMAT); // its beginnings are not all there
        packed_payload_close(&p);
        cache_release(&c);
        buf_release(&image);
    }
}

/* The n rows of a head, as libevicpress gives them. */
static void expect_rows(struct evp_payload *p, const struct evp_rows *head, const float *want, int n)
{
    static float to[T * K];
    struct evp_error error;

    cr_assert_eq(evp_fetch_rows(p, head, to, sizeof(to), &error), EVICPRESS_OK, "%s", error.text);
    for (int i = 0; i < n * K; i++)
        cr_assert(fabsf(to[i] - want[i]) < 1e-6F, "layer %d: number %d", (int)head->layer, i);
}

Test(windows, are_read_row_by_row)
{
    for (int i = 0; i < 3 * EVERY; i++) {
        const struct config config = config_of(every[i / 3]);
        struct buf image = image_of(every[i / 3], i % 3, WINDOW);
        struct evp_payload *p = calloc(1, sizeof(*p));
        struct evp_prefix prefix = { .n_tokens = T, .size = image.n };
        int64_t kept[G];
        struct cache c;
        struct err err;
        cache_init(&c, T);
        set_shape(&c, i % 3, WINDOW);
        struct made m = made_with(&c, &config, &err);
        snprintf(prefix.config, sizeof(prefix.config), "%s", config.name);
        cr_assert_eq(digest_tokens((const int32_t[T]){ 0 }, T, prefix.token_digest, &err), 0);
        p->file = (struct prefix_file){ .blob = blob_of_bytes(image.at, image.n), .path = "x", .stats = stats_new() };
        cr_assert_eq(payload_begin(p, &prefix, &err), 0, "%s", err.msg);
        for (int l = 0; l < 3; l++) {
            int place = l == i % 3 ? 0 : G; // of the first head in m
            cr_assert_eq(evp_kept(p, l, kept, G, NULL), EVICPRESS_OK);
            for (int g = 0; g < G; g++) {
                cr_assert_eq(kept[g], m.v.rows[place + g].n, "%s: layer %d", config.name, l);
                if (config.pack && config.pack->whole && place == 0)
                    continue; // arkv's order is another
                struct evp_rows head = { .layer = l, .first = g, .n = 1, .type = EVICPRESS_F32 };
                expect_rows(p, &head, m.k[place + g], (int)kept[g]);
                head.side = EVICPRESS_VALUES;
                expect_rows(p, &head, m.rows_v[place + g], (int)kept[g]);
            }
        }
        evp_payload_close(p);
        made_release(&m);
        cache_release(&c);
        buf_release(&image);
    }
}

/* Beginnings of an uncompressed context are there while nothing has left the window. */
Test(windows, do_not_keep_beginnings)
{
    for (int window = T - 1; window <= T; window++) {
        struct buf image = image_of("none", 0, window);
        struct payload p;
        struct err err;
        cr_assert_eq(payload_parse(&p, image.at, image.n, &err), 0);
        int code = payload_check_parts(&p, &err);
        cr_assert_eq(code, window < T ? ERR_FORMAT : 0);
        cr_assert(!code || strstr(err.msg, "tensor 'layers.1.k' has no row for each token"), "%s", err.msg);
        payload_close(&p);
        buf_release(&image);
    }
}

Test(windows, are_refused_where_they_make_no_sense)
{
    static const struct {
        const char *from, *to, *says;
    } bad[] = {
        { "\"window\\\":24,", "\"window\\\":25,", "the shape of tensor 'layers.1.k'" },
        { "\"window\\\":24,", "\"window\\\": 0,", "field 'window' is 0" },
        { "\"window\\\":24,", "\"widow_\\\":24,", "'window'" },
        { "\"windowed\\\":[1,2]", "\"windowed\\\":[0,2]", "the shape of tensor 'layers.1.k'" },
        { "\"windowed\\\":[1,2]", "\"windowed\\\":[1,3]", "does not ascend, or leaves the 3 layers" },
        { "\"windowed\\\":[1,2]", "\"windowed\\\":{}   ", "metadata 'cache'" },
        { "\"windowed\\\":[1,2]", "\"windowed\\\":[]   ", "is not a list of layers" },
        { "\"windowed\\\":[1,2]", "\"window_d\\\":[1,2]", "is not a list of layers" },
        { "[100,24,24]", "[100,25,24]", "metadata 'lengths' has 25 tokens in layer 1, the tensors 24" },
        { "\\\"n_layers\\\":3", "\\\"n_layers\\\":2", "'windowed'" },
        { "\\\"n_layers\\\":3", "\\\"n_layers\\\":4", "metadata 'cache' has 4 layers, the tensors 3" },
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct buf image = image_of("none", 0, WINDOW);
        struct packed_payload p;
        struct err err;
        char *at = memmem(image.at, image.n, bad[i].from, strlen(bad[i].from));
        cr_assert(at && strlen(bad[i].from) == strlen(bad[i].to), "%s", bad[i].from);
        memcpy(at, bad[i].to, strlen(bad[i].to));
        cr_assert_eq(packed_payload_parse(&p, image.at, image.n, PAYLOAD_HEADER, &err), ERR_FORMAT, "%s", bad[i].to);
        cr_assert(strstr(err.msg, bad[i].says), "%s: %s", bad[i].to, err.msg);
        buf_release(&image);
    }
}

/* Configs, sizes, and variants made of a small cache. */
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <math.h>

/* ---- configs ------------------------------------------------------------ */

Test(config, names_are_canonical)
{
    static const char *const name[][2] = {
        { "none", "none" },
        { "keydiff:drop=0.50", "keydiff:drop=0.5" },
        { "snapkv:compression_ratio=0.5", "snapkv:drop=0.5" }, // kvpress' name
        { "snapkv:window=32:compression_ratio=0.25+kivi:bits=4", "snapkv:drop=0.25:window=32+kivi:bits=4" },
        { "knorm:drop=0", "knorm:drop=0" },
        { "snapkv:kernel=7:window=64:drop=.3", "snapkv:drop=0.3:kernel=7" },
        { "streamingllm:drop=3e-1:n_sink=4", "streamingllm:drop=0.3" },
        { "kivi:residual=128:bits=2:group=64", "kivi:bits=2:group=64:residual=128" },
        { "snapkv:drop=0.5+kivi:bits=4", "snapkv:drop=0.5+kivi:bits=4" },
    };
    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
        cr_assert_str_eq(config_of(name[i][0]).name, name[i][1]);
}

Test(config, says_what_is_wrong)
{
    static const char *const bad[][2] = {
        { "", "no method ''; there are none, knorm, keydiff, snapkv, streamingllm, kivi" },
        { "kivy:bits=2", "no method 'kivy'" },
        { "none:drop=0.1", "no method 'none'" },
        { "keydiff", "keydiff needs drop, the share of KV pairs removed: keydiff:drop=..." },
        { "keydiff:", "keydiff has no parameter '', only drop" },
        { "keydiff:drop", "keydiff: drop must be a number from 0 to 0.999999, not ''" },
        { "keydiff:drop=1", "not '1'" },
        { "keydiff:drop=-0.1", "not '-0.1'" },
        { "keydiff:drop=0.5x", "not '0.5x'" },
        { "keydiff:drop=nan", "not 'nan'" },
        { "keydiff:drop=0.1:drop=0.2", "drop is given twice" },
        { "keydiff:ratio=0.5", "'ratio' has several meanings: say drop=0.5 for the share of KV pairs removed (kvpress: "
                               "compression_ratio=0.5)" },
        { "kivi:ratio=0.5", "kivi has no parameter 'ratio', only bits, group, residual" },
        { "kivi:compression_ratio=0.5", "kivi has no parameter 'compression_ratio'" },
        { "keydiff:compression_ratio=1", "keydiff: drop must be a number from 0 to 0.999999, not '1'" },
        { "keydiff:drop=0.1:compression_ratio=0.1", "keydiff: drop is given twice" },
        { "keydiff:compression=0.1", "keydiff has no parameter 'compression', only drop" },
        { "snapkv:drop=0.5:window=1.5", "window must be a whole number from 1 to 4096, not '1.5'" },
        { "snapkv:drop=0.5:kernel=4", "kernel must be odd" },
        { "kivi:bits=3", "bits must be 2 or 4, not '3'" },
        { "kivi:bits=2:group=64", "residual=32 is not a multiple of group=64" },
        { "keydiff:drop=0.5+snapkv:drop=0.5", "keydiff and snapkv are both dropping methods" },
        { "kivi:bits=2+kivi:bits=4", "both quantisers" },
        { "kivi:bits=2+keydiff:drop=0.5", "keydiff drops tokens, so it comes before kivi" },
        { "keydiff:drop=0.5+kivi:bits=2+kivi:bits=4", "at most 2 methods" },
        { "keydiff:drop=0.5+", "no method ''" },
        { "keydiff:drop=0.1..0.9/0.2", "not '0.1..0.9/0.2'" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct config c;
        struct err err;
        cr_assert_eq(config_parse(&c, bad[i][0], &err), ERR_USAGE, "%s", bad[i][0]);
        cr_assert(strstr(err.msg, bad[i][1]), "'%s' says: %s", bad[i][0], err.msg);
    }
}

Test(config, lists_expand_ranges)
{
    struct config *c;
    struct err err;
    int n;

    cr_assert_eq(config_list(&c, &n, "keydiff:drop=0.1..0.9/0.2,kivi:bits=2,keydiff:drop=0.3", &err), 0, "%s", err.msg);
    static const char *const want[] = { "none",
                                        "keydiff:drop=0.1",
                                        "keydiff:drop=0.3",
                                        "keydiff:drop=0.5",
                                        "keydiff:drop=0.7",
                                        "keydiff:drop=0.9",
                                        "kivi:bits=2" };
    cr_assert_eq(n, 7);
    for (int i = 0; i < n; i++)
        cr_assert_str_eq(c[i].name, want[i]);
    free(c);
    cr_assert_eq(config_list(&c, &n, "snapkv:drop=0.2..0.7/0.3+kivi:bits=2..4/2,none", &err), 0, "%s", err.msg);
    cr_assert_eq(n, 5);
    cr_assert_str_eq(c[2].name, "snapkv:drop=0.2+kivi:bits=4");
    cr_assert_str_eq(c[3].name, "snapkv:drop=0.5+kivi:bits=2");
    free(c);
    cr_assert_eq(config_list(&c, &n, "knorm:compression_ratio=0.1..0.5/0.2,knorm:drop=0.3", &err), 0, "%s", err.msg);
    cr_assert_eq(n, 4); // none, 0.1, 0.3 and 0.5; two names of one config are one config
    cr_assert_str_eq(c[2].name, "knorm:drop=0.3");
    free(c);
}

Test(config, refuses_bad_lists)
{
    static const char *const bad[] = {
        "",
        "none,",
        "keydiff:drop=0.1..0.9",
        "keydiff:drop=0.1../0.2",
        "keydiff:drop=0.9..0.1/0.2",
        "keydiff:drop=0.1..0.9/0",
        "keydiff:drop=0.1..0.9/-1",
        "keydiff:drop=0..0.9/1e-9",
        "..",
        "keydiff..",
        "keydiff:drop=0.1..1.1/0.5",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct config *c = NULL;
        struct err err;
        int n;
        cr_assert_eq(config_list(&c, &n, bad[i], &err), ERR_USAGE, "%s", bad[i]);
    }
}

/* Every number exactly at its limits, and beyond them. */
Test(config, numbers_have_limits)
{
    static const char *const good[] = { "knorm:drop=0",
                                        "knorm:drop=0.999999",
                                        "snapkv:drop=0.5:window=1",
                                        "snapkv:drop=0.5:window=4096",
                                        "snapkv:drop=0.5:kernel=1",
                                        "snapkv:drop=0.5:kernel=4095",
                                        "streamingllm:drop=0.5:n_sink=0",
                                        "streamingllm:drop=0.5:n_sink=1024",
                                        "kivi:bits=4:group=128:residual=128",
                                        "kivi:bits=2:residual=4096",
                                        "knorm:drop=0.50000000000000000000000000000" }; // 31 characters
    static const char *const bad[] = { "knorm:drop=-0.000001",
                                       "knorm:drop=0.9999991",
                                       "knorm:drop=1",
                                       "snapkv:drop=0.5:window=0",
                                       "snapkv:drop=0.5:window=4097",
                                       "snapkv:drop=0.5:kernel=0",
                                       "snapkv:drop=0.5:kernel=4094",
                                       "snapkv:drop=0.5:kernel=4097",
                                       "streamingllm:drop=0.5:n_sink=-1",
                                       "streamingllm:drop=0.5:n_sink=1025",
                                       "kivi:bits=1",
                                       "kivi:bits=8",
                                       "kivi:bits=4:group=16",
                                       "kivi:bits=4:group=256:residual=256",
                                       "kivi:bits=2:residual=0",
                                       "kivi:bits=2:residual=31",
                                       "kivi:bits=2:residual=33",
                                       "kivi:bits=2:residual=4128",
                                       "knorm:drop=0.500000000000000000000000000000" }; // 32 characters
    struct config c;
    struct err err;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        cr_assert_eq(config_parse(&c, good[i], &err), 0, "%s", err.msg);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert_eq(config_parse(&c, bad[i], &err), ERR_USAGE, "%s", bad[i]);
}

Test(config, a_list_has_up_to_4096)
{
    struct config *c;
    struct err err;
    int n;

    cr_assert_eq(config_list(&c, &n, "knorm:drop=0..0.4093/0.0001", &err), 0, "%s", err.msg);
    cr_assert_eq(n, 4095); // with none
    free(c);
    cr_assert_eq(config_list(&c, &n, "knorm:drop=0..0.4094/0.0001", &err), 0, "%s", err.msg);
    cr_assert_eq(n, 4096);
    free(c);
    cr_assert_eq(config_list(&c, &n, "knorm:drop=0..0.4095/0.0001", &err), ERR_USAGE);
    cr_assert(strstr(err.msg, "more than 4096 configs"), "%s", err.msg);
    cr_assert_eq(config_list(&c, &n, "knorm:drop=0..0.5/0.0001", &err), ERR_USAGE);
    cr_assert(strstr(err.msg, "must go up, in at most 4096 steps"), "%s", err.msg);
    cr_assert_eq(config_list(&c, &n, "knorm:drop=0.5..0.5/0.1", &err), 0, "%s", err.msg); // a range of one number
    cr_assert_eq(n, 2);
    free(c);
}

Test(config, says_what_prefill_must_save)
{
    const struct config c[] = { config_of("snapkv:drop=0.5:window=32+kivi:bits=2"), config_of("knorm:drop=0.5"),
                                config_of("snapkv:drop=0.5") };
    unsigned needs;
    int window;

    configs_need(c, 3, &needs, &window);
    cr_assert(needs == NEED_WINDOW_Q && window == 64);
    configs_need(c + 1, 1, &needs, &window);
    cr_assert(needs == NEED_NOTHING && window == 0);
}

/* ---- sizes -------------------------------------------------------------- */

/* As Python computes int(n * (1 - drop)), with at least one kept. */
Test(methods, keep_as_many_as_kvpress)
{
    static const struct {
        int n;
        double drop;
        int kept;
    } at[] = { { 10, 0.8, 1 },      { 10, 0.9, 1 },    { 100, 0.8, 19 },     { 100, 0.9, 9 },
               { 1000, 0.8, 199 },  { 1000, 0.9, 99 }, { 10000, 0.8, 1999 }, { 10000, 0.9, 999 },
               { 2000, 0.5, 1000 }, { 7, 0, 7 },       { 1, 0.999999, 1 } };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct config c = config_of("knorm:drop=0");
        c.stage[0].value[0] = at[i].drop;
        cr_assert_eq(config_n_keep(&c, at[i].n), at[i].kept, "%d at %g", at[i].n, at[i].drop);
    }
}

/* Published sizes: original / compressed, at two decimals. */
Test(methods, sizes_are_the_published_ones)
{
    static const struct kv_shape llama = { 32, 32, 8, 128, DTYPE_F32 };
    static const struct {
        const char *config;
        int n;
        const char *x;
    } at[] = {
        { "kivi:bits=2", 7964, "5.25" },      { "kivi:bits=4", 7964, "3.17" }, { "kivi:bits=4", 65536, "3.20" },
        { "snapkv:drop=0.75", 8000, "4.00" }, { "none", 5, "1.00" },
    };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct config c = config_of(at[i].config);
        char x[16];
        snprintf(x, sizeof(x), "%.2f", (double)kv_bytes(&llama, at[i].n) / (double)config_bytes(&c, &llama, at[i].n));
        cr_assert_str_eq(x, at[i].x, "%s at %d", at[i].config, at[i].n);
    }
    cr_assert_eq(kv_bytes(&llama, 1000), 131072000);
}

/* keys Tq K b/8 + Tq/g K 4 + (n-Tq) 2K, values likewise, over the kept tokens. */
Test(methods, chains_quantise_what_was_kept)
{
    static const struct kv_shape small = { 3, 4, 2, 64, DTYPE_F32 };
    struct config c = config_of("snapkv:drop=0.5+kivi:bits=4");
    int n = 1005; // of 2010; keys: 992 packed, 13 full; values: 973 packed, 32 full
    int64_t head = (992 + 973) * (64 / 2) + (992 + 973) * 2 * 4 + (13 + 32) * 128;

    cr_assert_eq(config_n_keep(&c, 2010), n);
    cr_assert_eq(config_bytes(&c, &small, 2010), 6 * head);
}

/* ---- variants ----------------------------------------------------------- */

Test(variants, none_is_the_cache_itself)
{
    struct cache c;
    struct config config = config_of("none");

    cache_init(&c, 40);
    struct variant v = variant_of(&c, &config);
    cr_assert(v.rows[3].k == c.rows[3].k && v.rows[3].n == 40 && !v.kept);
    cr_assert(v.keep_frac == 1 && v.size_frac == 1 && v.bytes == kv_bytes(&v.shape, 40));
    variant_release(&v);
    cache_release(&c);
}

Test(variants, hold_the_rows_they_keep)
{
    static const char *const name[] = { "knorm:drop=0.3", "keydiff:drop=0.7", "snapkv:drop=0.7:window=16",
                                        "streamingllm:drop=0.5", "keydiff:drop=0" };
    struct cache c;

    cache_init(&c, 100);
    for (size_t m = 0; m < 5; m++) {
        struct config config = config_of(name[m]);
        struct variant v = variant_of(&c, &config);
        int n = config_n_keep(&config, 100);
        cr_assert_eq(v.bytes, config_bytes(&config, &v.shape, 100));
        cr_assert_float_eq(v.keep_frac, n / 100., 1e-12);
        for (int i = 0; i < L * G * n && v.kept; i++) {
            const struct kv_rows *to = &v.rows[i / n], *from = &c.rows[i / n];
            cr_assert(i % n == 0 || v.kept[i] > v.kept[i - 1], "%s", name[m]);
            cr_assert_arr_eq(row(to->k, i % n), row(from->k, v.kept[i]), K * sizeof(float));
            cr_assert_arr_eq(row(to->v, i % n), row(from->v, v.kept[i]), K * sizeof(float));
        }
        cr_assert(v.kept || n == 100);
        cr_assert_eq(v.rows[L * G - 1].n, n);
        variant_release(&v);
    }
    cache_release(&c);
}

/* What a lighter drop lets go, a heavier one does not take back. */
Test(variants, keep_less_of_the_same)
{
    static const char *const name[][2] = { { "knorm:drop=0.3", "knorm:drop=0.8" },
                                           { "keydiff:drop=0.3", "keydiff:drop=0.8" },
                                           { "snapkv:drop=0.3:window=16", "snapkv:drop=0.8:window=16" } };
    struct cache c;

    cache_init(&c, 100);
    for (int m = 0; m < 3; m++) {
        struct config config[2] = { config_of(name[m][0]), config_of(name[m][1]) };
        struct variant many = variant_of(&c, &config[0]), few = variant_of(&c, &config[1]);
        bool kept[L * G][100] = { { false } };
        for (int i = 0; i < L * G * many.rows[0].n; i++)
            kept[i / many.rows[0].n][many.kept[i]] = true;
        for (int i = 0; i < L * G * few.rows[0].n; i++)
            cr_assert(kept[i / few.rows[0].n][few.kept[i]], "%s", name[m][1]);
        variant_release(&many);
        variant_release(&few);
    }
    cache_release(&c);
}

static int n_scorings;

static void count_norms(struct backend *be, float *score, const struct kv_rows *heads, int n_heads, int head_dim)
{
    (void)be, (void)head_dim;
    n_scorings++;
    memset(score, 0, (size_t)(n_heads * heads[0].n) * sizeof(*score));
}

Test(variants, are_scored_once_for_all_drops)
{
    struct cache c;

    cache_init(&c, 20);
    c.be->key_norms = count_norms;
    for (int i = 0; i < 3; i++) {
        struct config config = config_of(i == 0   ? "knorm:drop=0.1"
                                         : i == 1 ? "knorm:drop=0.5"
                                                  : "knorm:drop=0.5+kivi:bits=2");
        struct variant v = variant_of(&c, &config);
        variant_release(&v);
    }
    cr_assert_eq(n_scorings, 1);
    cache_release(&c);
}

static void expect_kept(int n_tokens, const char *text, const int32_t *want, int n)
{
    struct cache c;
    struct config config = config_of(text);

    cache_init(&c, n_tokens);
    struct variant v = variant_of(&c, &config);
    cr_assert_eq(v.rows[0].n, n, "%s of %d", text, n_tokens);
    for (int i = 0; i < L * G * n; i++)
        cr_assert_eq(v.kept[i], want[i % n], "%s of %d: %d", text, n_tokens, v.kept[i]);
    variant_release(&v);
    cache_release(&c);
}

Test(variants, streamingllm_keeps_sinks_and_recent)
{
    expect_kept(20, "streamingllm:drop=0.5", (int32_t[]){ 0, 1, 2, 3, 14, 15, 16, 17, 18, 19 }, 10);
    expect_kept(20, "streamingllm:drop=0.5:n_sink=0", (int32_t[]){ 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 }, 10);
    expect_kept(20, "streamingllm:drop=0.9", (int32_t[]){ 0 }, 1); // int(20 * 0.1) in double is 1
    expect_kept(20, "streamingllm:drop=0.85", (int32_t[]){ 0, 1, 2 }, 3);
    expect_kept(3, "streamingllm:drop=0.5", (int32_t[]){ 0 }, 1); // fewer tokens than sinks
}

Test(variants, snapkv_keeps_its_window_from_the_end)
{
    expect_kept(20, "snapkv:drop=0.8:window=16", (int32_t[]){ 17, 18, 19 }, 3); // int(20 * 0.2) in double is 3
    expect_kept(20, "snapkv:drop=0.2:window=16",
                (int32_t[]){ 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 }, 16);
    expect_kept(10, "snapkv:drop=0.5:window=16", (int32_t[]){ 5, 6, 7, 8, 9 }, 5); // all of it is window
    expect_kept(2, "snapkv:drop=0.5:window=16", (int32_t[]){ 1 }, 1);
}

/* A smaller window than the one that was saved takes the last queries of it: those ask for token 30, the others for 7.
 */
Test(variants, snapkv_takes_the_last_queries_saved)
{
    struct cache c;
    struct config config = config_of("snapkv:drop=0.91:window=4:kernel=1");
    static const int32_t want[] = { 30, 56, 57, 58, 59 };

    cache_init(&c, 60);
    for (int i = 0; i < L * W * H * K; i++) {
        int layer = i / (W * H * K), in_layer = i % (W * H * K);
        int g = in_layer / (W * (H / G) * K), token = in_layer / (H / G * K) % W;
        float *q = c.window_q[layer];
        q[in_layer] = 100 * row(c.rows[layer * G + g].k, token < W - 4 ? 7 : 30)[i % K];
    }
    struct variant v = variant_of(&c, &config);
    for (int i = 0; i < L * G * 5; i++)
        cr_assert_eq(v.kept[i], want[i % 5], "head %d: %d", i / 5, v.kept[i]);
    variant_release(&v);
    cache_release(&c);
}

/* Contexts of the window's length, one token fewer, one more; and pooling wider than what there is to pool. */
Test(variants, snapkv_knows_where_its_window_begins)
{
    static const int32_t last[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

    expect_kept(15, "snapkv:drop=0.2:window=16", last + 2, 12);
    expect_kept(16, "snapkv:drop=0.2:window=16", last + 3, 12); // int(16 * 0.8) in double is 12
    expect_kept(16, "snapkv:drop=0.05:window=16", last, 15);
    expect_kept(17, "snapkv:drop=0.05:window=16", last, 16); // token 0 alone is no part of the window
    expect_kept(17, "snapkv:drop=0.05:window=16:kernel=4095", last, 16);
}

/* Rows packed of n tokens, around the residual of 32. */
Test(methods, kivi_packs_from_its_residual_on)
{
    static const struct {
        int n, keys, values;
    } at[] = {
        { 1, 0, 0 }, { 31, 0, 0 }, { 32, 32, 0 }, { 33, 32, 1 }, { 63, 32, 31 }, { 64, 64, 32 }, { 65, 64, 33 }
    };
    static const struct kv_shape small = { 1, 4, 2, 64, DTYPE_F32 };
    struct config c = config_of("kivi:bits=4");
    struct packed_part part[PART_MAX];

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        cr_assert_eq(config_parts(&c, &small, at[i].n, part), PART_MAX);
        cr_assert_eq(part[0].dim[1], at[i].n - at[i].keys, "%d tokens", at[i].n);
        cr_assert_eq(part[1].dim[2], at[i].keys / 8, "%d tokens", at[i].n);
        cr_assert_eq(part[4].dim[1], at[i].n - at[i].values, "%d tokens", at[i].n);
        cr_assert_eq(part[5].dim[1], at[i].values, "%d tokens", at[i].n);
    }
}

/* Heads go to the backend 64 matrices at a time; all heads are the same here, so all must come back the same. */
Test(methods, kivi_packs_every_head)
{
    enum { N = 96, HEADS = 33 };
    struct cache c;
    struct config config = config_of("kivi:bits=2");

    cache_init(&c, N);
    for (int heads = HEADS - 2; heads <= HEADS; heads++) {
        const struct kv_shape shape = { 1, heads, heads, K, DTYPE_F32 };
        struct packed_part part[PART_MAX];
        struct kv_rows rows[HEADS];
        int n_parts = config_parts(&config, &shape, N, part);
        for (int i = 0; i < n_parts; i++)
            part[i].at = malloc(packed_part_bytes(&part[i]));
        for (int h = 0; h < heads; h++) {
            rows[h] = (struct kv_rows){ malloc(N * K * sizeof(float)), malloc(N * K * sizeof(float)), N };
            memcpy(rows[h].k, c.rows[0].k, N * K * sizeof(float));
            memcpy(rows[h].v, c.rows[0].v, N * K * sizeof(float));
        }
        const struct packed_layer layer = { rows, &shape, config.stage[0].value, part };
        config.stage[0].method->quantise(c.be, &layer);
        config.stage[0].method->dequantise(c.be, &layer);
        cr_assert_neq(row(rows[0].k, 0)[5], row(c.rows[0].k, 0)[5]);
        for (int h = heads - 1; h >= 0; h--) {
            cr_assert_arr_eq(rows[h].k, rows[0].k, N * K * sizeof(float), "head %d of %d", h, heads);
            cr_assert_arr_eq(rows[h].v, rows[0].v, N * K * sizeof(float), "head %d of %d", h, heads);
            free(rows[h].k);
            free(rows[h].v);
        }
        for (int i = 0; i < n_parts; i++)
            free(part[i].at);
    }
    cache_release(&c);
}

static int64_t part_bytes(const struct variant *v)
{
    int64_t bytes = 0;

    for (int i = 0; i < v->shape.n_layers * v->n_parts; i++)
        bytes += (int64_t)packed_part_bytes(&v->parts[i]);
    return bytes;
}

Test(variants, kivi_keeps_the_recent_and_rounds_the_rest)
{
    static const char *const name[] = { "kivi:bits=4", "kivi:bits=2" };
    struct cache c;

    cache_init(&c, 100); // keys: 96 packed; values: 68 packed
    for (int m = 0; m < 2; m++) {
        struct config config = config_of(name[m]);
        struct variant v = variant_of(&c, &config);
        double half_step = 2.01 / (m ? 3 : 15) / 2;
        cr_assert(part_bytes(&v) == v.bytes && v.size_frac < 1 && v.keep_frac == 1);
        for (int h = 0; h < L * G; h++) {
            cr_assert_arr_eq(row(v.rows[h].k, 96), row(c.rows[h].k, 96), 4 * K * sizeof(float));
            cr_assert_arr_eq(row(v.rows[h].v, 68), row(c.rows[h].v, 68), 32 * K * sizeof(float));
            for (int i = 0; i < 100 * K; i++) {
                double dk = fabs((double)row(v.rows[h].k, 0)[i] - (double)row(c.rows[h].k, 0)[i]);
                double dv = fabs((double)row(v.rows[h].v, 0)[i] - (double)row(c.rows[h].v, 0)[i]);
                cr_assert(dk <= half_step && dv <= half_step, "%s: %g %g", name[m], dk, dv);
            }
        }
        cr_assert_neq(row(v.rows[0].k, 0)[5], row(c.rows[0].k, 0)[5]);
        variant_release(&v);
    }
    cache_release(&c);
}

Test(variants, kivi_leaves_short_contexts_alone)
{
    struct cache c;
    struct config config = config_of("kivi:bits=2");

    cache_init(&c, 31);
    struct variant v = variant_of(&c, &config);
    cr_assert(v.size_frac == 1 && part_bytes(&v) == v.bytes);
    cr_assert_arr_eq(v.rows[0].k, c.rows[0].k, 31 * K * sizeof(float));
    variant_release(&v);
    cache_release(&c);
}

Test(variants, refuse_groups_that_do_not_divide_a_head)
{
    struct cache c;
    struct config config = config_of("kivi:bits=2:group=64:residual=64");
    struct variant v;
    struct err err;

    cache_init(&c, 200);
    cr_assert_eq(compressor_variant(c.c, &config, VARIANT_ROWS, &v, &err), ERR_USAGE);
    cr_assert_str_eq(err.msg, "config 'kivi:bits=2:group=64:residual=64': kivi: the model's head_dim 32 is not a "
                              "multiple of group=64");
    cache_release(&c);
}

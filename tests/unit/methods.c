/* Configs, and sizes known before anything is computed. */
#include "formats/config_name.h"
#include "tests/unit/cache.h"

#include <criterion/criterion.h>

/* ---- configs ------------------------------------------------------------ */

Test(config, names_are_canonical)
{
    static const char *const name[][2] = {
        { "none", "none" },
        { "keydiff:drop=0.50", "keydiff:drop=0.5" },
        { "snapkv:compression_ratio=0.5", "snapkv:drop=0.5" }, // kvpress' name
        { "snapkv:window=32:compression_ratio=0.25+kivi:bits=4", "snapkv:drop=0.25:window=32+kivi:bits=4" },
        { "snapkv:0.5", "snapkv:drop=0.5" }, // the parameter without a default
        { "SnapKV:0.5:window=32+KIVI:2", "snapkv:drop=0.5:window=32+kivi:bits=2" },
        { "AdaKV+SnapKV:compression_ratio=.3", "adakv+snapkv:drop=0.3" },
        { "keydiff:drop=50%", "keydiff:drop=0.5" },
        { "None", "none" },
        { "knorm:drop=0", "knorm:drop=0" },
        { "snapkv:kernel=7:window=64:drop=.3", "snapkv:drop=0.3:kernel=7" },
        { "streamingllm:drop=3e-1:n_sink=4", "streamingllm:drop=0.3" },
        { "kivi:residual=128:bits=2:group=64", "kivi:bits=2:group=64:residual=128" },
        { "snapkv:drop=0.5+kivi:bits=4", "snapkv:drop=0.5+kivi:bits=4" },
        { "CacheGen:cdf=context", "cachegen" },
        { "knorm:0.5+cachegen:cdf=chunk", "knorm:drop=0.5+cachegen:cdf=chunk" },
        { "snapkv:drop=0.5+FP8", "snapkv:drop=0.5+fp8" },
        { "fp8:scale=head", "fp8" },
        { "fp8:scale=token", "fp8:scale=token" },
        { "int4:group=64", "int4" },
        { "turboquant:4", "turboquant:bits=4" },
        { "turboquant:outliers=32:norm=f32:rotation=qr:3", "turboquant:bits=3:rotation=qr:outliers=32:norm=f32" },
        { "pyramidkv:beta=20:kernel=7:drop=0.50:window=32", "pyramidkv:drop=0.5:window=32:kernel=7" },
        { "tova:drop=0.5:heads=all", "tova:drop=0.5" }, // a word
        { "tova:heads=own:compression_ratio=0.5", "tova:drop=0.5:heads=own" },
        { "keydiff:block=128:drop=0.5", "keydiff:drop=0.5:block=128" },
        { "keydiff:block=0:drop=0.5", "keydiff:drop=0.5" },
        { "h2o:0.5:recent=half", "h2o:drop=0.5:recent=half" },
        { "random:seed=0:drop=0.5", "random:drop=0.5" },
        { "CUR:0.5:leverage=kv_product:block=16:n_sink=4", "cur:drop=0.5" },
        { "KVzip:over=all:0.5:prefix=protect", "kvzip:drop=0.5" },
        { "kvzip:over=layer:prefix=kvpress:drop=0.5+kivi:2", "kvzip:drop=0.5:prefix=kvpress:over=layer+kivi:bits=2" },
        { "adakv:safeguard=0.20+h2o:drop=0.5", "adakv+h2o:drop=0.5" },
        { "adakv+snapkv:0.5+CaM:seed=7:sample=bernoulli:window=64+kivi:4",
          "adakv+snapkv:drop=0.5+cam:sample=bernoulli:seed=7+kivi:bits=4" },
        { "ARKV:0.5:stats=paper:window=32", "arkv:drop=0.5:stats=paper" },
        { "knorm:drop=0.5+merge_cos:threshold=50%", "knorm:drop=0.5+merge_cos:threshold=0.5" },
        { "expected_attention:use_vnorm=yes:n_future=512:drop=0.5:epsilon=0", "expected_attention:drop=0.5" },
        { "expected_attention:use_vnorm=no:drop=0.5:epsilon=0.01",
          "expected_attention:drop=0.5:epsilon=0.01:use_vnorm=no" },
        { "criticalkv:epsilon=0.0001+snapkv:drop=0.5", "criticalkv+snapkv:drop=0.5" },
        { "criticalkv:first_stage_ratio=0.8+snapkv:drop=0.5", "criticalkv:first_stage_ratio=0.8+snapkv:drop=0.5" },
        { "ChunkKV:length=20+SnapKV:0.5+kivi:4", "chunkkv+snapkv:drop=0.5+kivi:bits=4" },
        { "adakv:safeguard=0.3+snapkv:drop=0.5+kivi:bits=4", "adakv:safeguard=0.3+snapkv:drop=0.5+kivi:bits=4" },
    };
    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
        cr_assert_str_eq(config_of(name[i][0]).name, name[i][1]);
}

static void expect_refused(const char *const bad[][2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct config c;
        struct err err;
        cr_assert_eq(config_parse(&c, bad[i][0], &err), ERR_USAGE, "%s", bad[i][0]);
        cr_assert(strstr(err.msg, bad[i][1]), "'%s' says: %s", bad[i][0], err.msg);
    }
}

Test(config, says_what_is_wrong)
{
    static const char *const bad[][2] = {
        { "",
          "no method ''; there are none, knorm, keydiff, snapkv, pyramidkv, tova, h2o, streamingllm, "
          "kvzip, lagkv, random, cur, arkv, expected_attention, adakv, criticalkv, chunkkv, cam, merge_cos, kivi, cachegen, fp8, int8, int4, nvfp4, turboquant" },
        { "nf4", "; those that quantise: kivi, cachegen, fp8, int8, int4, nvfp4, turboquant" },
        { "kivy:bits=2", "no method 'kivy'" },
        { "none:drop=0.1", "no method 'none'" },
        { "keydiff", "keydiff needs drop, the share of KV pairs removed: keydiff:drop=..." },
        { "keydiff:", "keydiff has no parameter '', only drop, block" },
        { "keydiff:drop", "keydiff: drop must be a number from 0 to 0.999999, not ''" },
        { "keydiff:drop=1", "not '1'" },
        { "keydiff:drop=-0.1", "not '-0.1'" },
        { "keydiff:drop=0.5x", "not '0.5x'" },
        { "keydiff:drop=nan", "not 'nan'" },
        { "keydiff:drop=0.1:drop=0.2", "drop is given twice" },
        { "snapkv:ratio=0.25",
          "'ratio' has several meanings; did you mean 'snapkv:drop=0.25', where drop is the share of "
          "KV pairs removed (kvpress: compression_ratio)?" },
        { "keydiff:ratio", "did you mean 'keydiff:drop=0.5'" },
        { "keydiff:ratio=+kivi:bits=2", "did you mean 'keydiff:drop=0.5'" },
        { "cachegen:cdf=all", "cachegen: cdf must be context or chunk, not 'all'" },
        { "cachegen+kivi:bits=2", "cachegen and kivi are both quantisers" },
        { "kivi:ratio=0.5", "kivi has no parameter 'ratio', only bits, group, residual" },
        { "snapkv:windw=3", "has no parameter 'windw', only drop, window, kernel; did you mean 'window'?" },
        { "SnapKVPress:0.5", "; did you mean 'snapkv'?" },
        { "snapkv:0.5:0.6", "snapkv: drop is given twice" },
        { "snapkv:1.5", "snapkv: drop must be a number from 0 to 0.999999, not '1.5'" },
        { "snapkv:100%", "snapkv: drop must be a number from 0 to 0.999999, not '100%'" },
        { "kivi:bits=200%", "bits must be 2 or 4, not '200%'" },
        { "adakv:0.2+snapkv:0.5", "adakv has no parameter '0.2', only safeguard" },
        { "0.5", "'0.5' is a number, not a method: several values are a range, drop=0.1..0.5/0.2, or several configs, "
                 "snapkv:drop=0.1,snapkv:drop=0.5" },
        { "kivi:compression_ratio=0.5", "kivi has no parameter 'compression_ratio'" },
        { "keydiff:compression_ratio=1", "keydiff: drop must be a number from 0 to 0.999999, not '1'" },
        { "keydiff:drop=0.1:compression_ratio=0.1", "keydiff: drop is given twice" },
        { "keydiff:compression=0.1", "keydiff has no parameter 'compression', only drop, block" },
        { "keydiff:drop=0.5:block=65537", "keydiff: block must be a whole number from 0 to 65536, not '65537'" },
        { "h2o:drop=0.5:recent=0.5", "h2o: recent must be none or half, not '0.5'" },
        { "random:drop=0.5:seed=-1", "random: seed must be a whole number from 0 to 1000000000, not '-1'" },
        { "cur:drop=0.5:leverage=kv", "cur: leverage must be kv_product or kv_avg or key or value, not 'kv'" },
        { "cur:drop=0.5:block=4097", "cur: block must be a whole number from 0 to 4096, not '4097'" },
        { "snapkv:drop=0.5:window=1.5", "window must be a whole number from 1 to 4096, not '1.5'" },
        { "snapkv:drop=0.5:kernel=4", "snapkv: kernel must be odd" },
        { "kivi:bits=3", "bits must be 2 or 4, not '3'" },
        { "kivi:bits=2:group=64", "residual=32 is not a multiple of group=64" },
        { "keydiff:drop=0.5+snapkv:drop=0.5", "keydiff and snapkv are both dropping methods" },
        { "kivi:bits=2+kivi:bits=4", "both quantisers" },
        { "kivi:bits=2+keydiff:drop=0.5", "keydiff drops tokens, so it comes before kivi" },
        { "keydiff:drop=0.5+kivi:bits=2+kivi:bits=4", "kivi and kivi are both quantisers" },
        { "adakv+knorm:drop=0.5+kivi:bits=2+kivi:bits=4+kivi:bits=4", "at most 4 methods" },
        { "adakv", "adakv works with the scores of a dropping method, which must follow: "
                   "adakv+snapkv:drop=0.5" },
        { "adakv+kivi:bits=2", "which must follow: adakv+snapkv:drop=0.5" },
        { "adakv+adakv+knorm:drop=0.5", "adakv and adakv are both budgets; a chain has one of each kind" },
        { "knorm:drop=0.5+adakv",
          "adakv works with the scores of a dropping method, so it comes before knorm in a chain" },
        { "kivi:bits=2+adakv", "adakv works with the scores of a dropping method, so it comes before kivi in a chain" },
        { "adakv:drop=0.5+snapkv", "adakv has no parameter 'drop', only safeguard" },
        { "adakv:safeguard=1.1+snapkv:drop=0.5", "adakv: safeguard must be a number from 0 to 1, not '1.1'" },
        { "fp8:scale=row", "fp8: scale must be head or token or one, not 'row'" },
        { "int4:group=48", "int4: group must be 16 or 32 or 64 or 128, not '48'" },
        { "nvfp4:bits=4", "nvfp4 has no parameter 'bits', only " },
        { "turboquant", "turboquant needs bits, the bits per number: turboquant:bits=..." },
        { "turboquant:bits=4:outliers=32",
          "turboquant: outliers=32 needs bits=3: outliers have one bit more, and at most 4" },
        { "fp8+kivi:bits=4", "fp8 and kivi are both quantisers" },
        { "expected_attention:drop=0.5:n_future=5000",
          "expected_attention: n_future must be a whole number from 1 to 4096, not '5000'" },
        { "expected_attention:drop=0.5:use_vnorm=1", "expected_attention: use_vnorm must be no or yes, not '1'" },
        { "tova:drop=0.5:heads=each", "tova: heads must be all or own, not 'each'" },
        { "tova:drop=0.5:heads=1", "tova: heads must be all or own, not '1'" },
        { "tova:drop=0.5:heads=", "tova: heads must be all or own, not ''" },
        { "tova:drop=0.5:window=1", "tova has no parameter 'window', only drop, heads" },
        { "pyramidkv:drop=0.5:kernel=4", "pyramidkv: kernel must be odd" },
        { "kvzip:drop=0.5:prefix=keep", "kvzip: prefix must be protect or kvpress, not 'keep'" },
        { "kvzip:drop=0.5:over=head", "kvzip: over must be all or layer, not 'head'" },
        { "adakv+kvzip:drop=0.5", "kvzip shares its budget among heads by itself, so adakv cannot precede it" },
        { "keydiff:drop=0.5+", "no method ''" },
        { "keydiff:drop=0.1..0.9/0.2", "not '0.1..0.9/0.2'" },
    };
    expect_refused(bad, sizeof(bad) / sizeof(*bad));
}

/* criticalkv, chunkkv, merging methods, and arkv. */
Test(config, says_what_a_chain_needs)
{
    static const char *const bad[][2] = {
        { "criticalkv",
          "criticalkv works with the scores of a dropping method, which must follow: criticalkv+snapkv:drop=0.5" },
        { "criticalkv:epsilon=2+snapkv:drop=0.5", "criticalkv: epsilon must be a number from 0 to 1, not '2'" },
        { "criticalkv+adakv+snapkv:drop=0.5", "criticalkv and adakv are both budgets; a chain has one of each kind" },
        { "chunkkv+adakv+knorm:drop=0.5", "chunkkv and adakv are both budgets; a chain has one of each kind" },
        { "chunkkv:length=0+knorm:drop=0.5", "chunkkv: length must be a whole number from 1 to 4096, not '0'" },
        { "chunkkv:length=20", "chunkkv works with the scores of a dropping method, which must follow" },
        { "cam",
          "cam merges dropped tokens into others, so a dropping method must come before it: snapkv:drop=0.5+cam" },
        { "merge_cos+kivi:bits=2", "so a dropping method must come before it: snapkv:drop=0.5+merge_cos" },
        { "cam+knorm:drop=0.5", "knorm drops tokens, so it comes before cam in a chain" },
        { "knorm:drop=0.5+kivi:bits=2+cam",
          "cam merges dropped tokens into others, so it comes before kivi in a chain" },
        { "knorm:drop=0.5+cam+merge_cos", "cam and merge_cos are both merging methods; a chain has one of each kind" },
        { "knorm:drop=0.5+cam:sample=drawn", "cam: sample must be expected or bernoulli, not 'drawn'" },
        { "adakv+arkv:drop=0.5", "arkv drops and packs by itself, so nothing stands beside it in a chain" },
        { "arkv:drop=0.5+kivi:bits=4", "arkv drops and packs by itself, so nothing stands beside it in a chain" },
        { "arkv:drop=0.5+cam", "arkv drops and packs by itself" },
        { "arkv:drop=0.5+knorm:drop=0.5", "arkv and knorm are both dropping methods" },
        { "arkv:drop=0.5:window=1", "arkv: window must be a whole number from 2 to 4096, not '1'" },
        { "arkv:drop=0.5:stats=mine", "arkv: stats must be code or paper, not 'mine'" },
        { "arkv", "arkv needs drop, the share of KV pairs removed: arkv:drop=..." },
    };
    expect_refused(bad, sizeof(bad) / sizeof(*bad));
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
    cr_assert_eq(config_list(&c, &n, "SnapKV:0.1..0.9", &err), 0, "%s", err.msg);
    cr_assert_eq(n, 10); // none, and in steps of 0.1
    cr_assert_str_eq(c[9].name, "snapkv:drop=0.9");
    free(c);
}

Test(config, refuses_bad_lists)
{
    static const char *const bad[] = {
        "",
        "none,",
        "keydiff:drop=0.1..0.9/",
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
                                        "keydiff:drop=0.5:block=65536",
                                        "random:drop=0.5:seed=1000000000",
                                        "cur:drop=0.5:block=4096:n_sink=1024",
                                        "kivi:bits=4:group=128:residual=128",
                                        "kivi:bits=2:residual=4096",
                                        "pyramidkv:drop=0.5:beta=1",
                                        "pyramidkv:drop=0.5:beta=1000",
                                        "adakv:safeguard=0+knorm:drop=0",
                                        "adakv:safeguard=1+knorm:drop=0",
                                        "knorm:drop=0+cam:window=4096:seed=1000000000",
                                        "knorm:drop=0+merge_cos:threshold=1",
                                        "arkv:drop=0.000001:window=2",
                                        "arkv:drop=0.999999:window=4096",
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
                                       "pyramidkv:drop=0.5:beta=0",
                                       "pyramidkv:drop=0.5:beta=1001",
                                       "pyramidkv:drop=0.5:beta=1.5",
                                       "adakv:safeguard=-0.1+knorm:drop=0",
                                       "adakv:safeguard=1.0001+knorm:drop=0",
                                       "knorm:drop=0+cam:window=4097",
                                       "knorm:drop=0+cam:window=0",
                                       "knorm:drop=0+cam:seed=1000000001",
                                       "knorm:drop=0+cam:seed=0.5",
                                       "knorm:drop=0+merge_cos:threshold=1.01",
                                       "arkv:drop=0",
                                       "arkv:drop=0.5:window=4097",
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
    const struct config c[] = { config_of("snapkv:drop=0.5:window=32+kivi:bits=2"),
                                config_of("knorm:drop=0.5"),
                                config_of("snapkv:drop=0.5"),
                                config_of("adakv+h2o:drop=0.5"),
                                config_of("tova:drop=0.5"),
                                config_of("none"),
                                config_of("kvzip:drop=0.5") };
    const struct config *list[] = { &c[0], &c[1], &c[2], &c[3], &c[4], &c[5], &c[6] };
    static const struct {
        int first, n;
        unsigned needs;
        int window;
    } want[] = {
        { 0, 3, NEED_WINDOW_Q, 64 },   { 1, 1, NEED_NOTHING, 0 },
        { 3, 1, NEED_COLUMN_SUMS, 0 }, { 4, 2, NEED_WINDOW_Q, 1 },
        { 5, 1, NEED_NOTHING, 0 },     { 0, 6, NEED_WINDOW_Q | NEED_COLUMN_SUMS, 64 },
        { 6, 1, NEED_REPEAT, 0 },      { 4, 3, NEED_WINDOW_Q | NEED_REPEAT, 1 },
    };
    unsigned needs;
    int window;

    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        configs_need(list + want[i].first, want[i].n, &needs, &window);
        cr_assert(needs == want[i].needs && window == want[i].window, "%zu: %u %d", i, needs, window);
    }
}

/* ---- sizes -------------------------------------------------------------- */

static const struct kv_shape llama = { 32, 32, 8, 128, DTYPE_F32 }, small = { 3, 4, 2, 64, DTYPE_F32 };

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
        cr_assert_eq(config_n_keep(&c, &small, at[i].n, 1), at[i].kept, "%d at %g", at[i].n, at[i].drop);
    }
}

/* What kvpress 0.5.5 gives each layer: the first, the second, the middle one and the last, and all together. Where no
 * pyramid fits, all layers keep the same. */
Test(methods, pyramidkv_keeps_as_many_as_kvpress)
{
    static const struct {
        int n_layers, n;
        const char *config;
        int first, second, middle, last, sum;
    } at[] = {
        { 30, 2068, "pyramidkv:drop=0.1", 2004, 1994, 1856, 1718, 55835 },
        { 30, 2068, "pyramidkv:drop=0.5", 2004, 1937, 1001, 64, 31020 },
        { 30, 2068, "pyramidkv:drop=0.9", 207, 207, 207, 207, 6210 },
        { 30, 2000, "pyramidkv:drop=0.36", 1936, 1891, 1257, 624, 38400 },
        { 4, 101, "pyramidkv:drop=0.5:window=4", 97, 66, 35, 4, 202 },
        { 4, 1000, "pyramidkv:drop=0.5:window=16:beta=5", 900, 633, 367, 100, 2000 },
        { 1, 1000, "pyramidkv:drop=0.5:window=16:beta=5", 900, 900, 900, 900, 900 },
        { 4, 999, "pyramidkv:drop=0.49:window=8", 991, 670, 349, 28, 2038 },
        { 4, 25, "pyramidkv:drop=0.5:window=1:beta=2", 19, 15, 10, 6, 50 },
        { 7, 10000, "pyramidkv:drop=0.7", 5850, 4900, 3000, 150, 21000 },
        { 4, 1000, "pyramidkv:drop=0.999", 1, 1, 1, 1, 4 },
        { 4, 10, "pyramidkv:drop=0.95:window=1", 1, 1, 1, 1, 4 },
        { 3, 1000, "pyramidkv:drop=0.5:window=16:beta=1", 500, 500, 500, 500, 1500 },
        { 5, 100, "pyramidkv:drop=0.255:window=4", 96, 85, 74, 53, 372 },
        { 4, 10, "pyramidkv:drop=0", 10, 10, 10, 10, 40 },
    };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const struct config c = config_of(at[i].config);
        const struct kv_shape shape = { at[i].n_layers, 4, 2, 64, DTYPE_F32 };
        int sum = 0, L1 = at[i].n_layers - 1, one = L1 > 0 ? 1 : 0;
        for (int l = 0; l <= L1; l++)
            sum += config_n_keep(&c, &shape, at[i].n, l);
        cr_assert_eq(sum, at[i].sum, "%s of %d: %d", at[i].config, at[i].n, sum);
        cr_assert_eq(config_n_keep(&c, &shape, at[i].n, 0), at[i].first, "%s of %d", at[i].config, at[i].n);
        cr_assert_eq(config_n_keep(&c, &shape, at[i].n, one), at[i].second, "%s of %d", at[i].config, at[i].n);
        cr_assert_eq(config_n_keep(&c, &shape, at[i].n, (L1 + 1) / 2), at[i].middle, "%s", at[i].config);
        cr_assert_eq(config_n_keep(&c, &shape, at[i].n, L1), at[i].last, "%s of %d", at[i].config, at[i].n);
        cr_assert_float_eq(config_keep_frac(&c, &shape, at[i].n), sum / (double)(L1 + 1) / at[i].n, 1e-12);
        cr_assert_eq(config_bytes_known(&c, &shape, at[i].n), (int64_t)sum * 2 * 64 * 4);
    }
}

/* Published sizes: original / compressed, at two decimals. */
Test(methods, sizes_are_the_published_ones)
{
    static const struct {
        const char *config;
        int n;
        const char *x;
    } at[] = {
        { "kivi:bits=2", 7964, "5.25" },
        { "kivi:bits=4", 7964, "3.17" },
        { "kivi:bits=4", 65536, "3.20" },
        { "snapkv:drop=0.75", 8000, "4.00" },
        { "none", 5, "1.00" },
        { "nvfp4", 7964, "3.56" },
        { "turboquant:bits=4", 7964, "3.88" },
        { "turboquant:bits=3", 7964, "5.12" },
        { "turboquant:bits=4:rotation=qr:norm=f32", 7964, "3.76" }, // the table by OmarHory's code
        { "turboquant:bits=3:rotation=qr:norm=f32:outliers=32", 7964, "4.27" },
        { "turboquant:bits=4:values=uniform", 7964, "3.82" }, // LMCache's, without layers in full
        { "turboquant:bits=3:values=uniform", 7964, "5.02" },
    };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct config c = config_of(at[i].config);
        char x[16];
        snprintf(x, sizeof(x), "%.2f",
                 (double)kv_bytes(&llama, at[i].n) / (double)config_bytes_known(&c, &llama, at[i].n));
        cr_assert_str_eq(x, at[i].x, "%s at %d", at[i].config, at[i].n);
    }
    cr_assert_eq(kv_bytes(&llama, 1000), 131072000);
}

/* What a config cannot make of a model's heads. */
Test(methods, refuse_heads_that_they_cannot_pack)
{
    static const struct {
        const char *config;
        int head_dim;
        const char *said; // NULL: it can
    } at[] = {
        { "turboquant:bits=4", 80,
          "config 'turboquant:bits=4': turboquant: rotation=wht needs a power of two, and the "
          "model's head_dim is 80; rotation=qr takes it" },
        { "turboquant:bits=4:rotation=qr", 80, NULL },
        { "turboquant:bits=4:rotation=qr", 84, "head_dim 84 is not a multiple of 8 from 8 to 256" },
        { "turboquant:bits=4", 256, NULL },
        { "turboquant:bits=4", 512, "head_dim 512 is not a multiple of 8 from 8 to 256" },
        { "turboquant:bits=3:outliers=32", 128, "head_dim is 128, of which 32 are outliers; rotation=qr takes it" },
        { "turboquant:bits=3:outliers=32", 64, NULL },
        { "turboquant:bits=3:outliers=32", 32, "head_dim 32 is not a multiple of 8 from 40 to 256" },
        { "nvfp4", 80, NULL },
        { "nvfp4", 72, "config 'nvfp4': nvfp4: the model's head_dim 72 is not a multiple of 16" },
        { "int4", 80, "config 'int4': int4: the model's head_dim 80 is not a multiple of group=64" },
        { "int8:group=16", 80, NULL },
        { "fp8", 72, NULL },
    };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const struct kv_shape shape = { 1, 2, 2, at[i].head_dim, DTYPE_F32 };
        const struct config c = config_of(at[i].config);
        struct err err = { 0 };
        cr_assert_eq(config_check(&c, &shape, &err), at[i].said ? ERR_USAGE : 0, "%s: %s", at[i].config, err.msg);
        cr_assert(!at[i].said || strstr(err.msg, at[i].said), "%s", err.msg);
    }
}

/* Bytes of a head of n tokens, keys and values, under each quantiser of rows. */
Test(methods, sizes_of_row_formats)
{
    static const struct {
        const char *config;
        int head_dim, bytes, of_head; // of two rows; of a head besides
    } at[] = {
        { "fp8", 64, 128, 8 },
        { "fp8", 80, 160, 8 },
        { "fp8", 128, 256, 8 },
        { "int8", 64, 136, 0 },
        { "int8:group=16", 80, 200, 0 },
        { "int4", 128, 144, 0 },
        { "int4:group=32", 64, 80, 0 },
        { "int4:group=16", 80, 120, 0 },
        { "nvfp4", 64, 72, 8 },
        { "nvfp4", 80, 90, 8 },
        { "nvfp4", 128, 144, 8 },
        { "turboquant:bits=4", 64, 68, 0 },
        { "turboquant:bits=4:rotation=qr", 80, 84, 0 },
        { "turboquant:bits=4", 128, 132, 0 },
        { "turboquant:bits=3", 128, 100, 0 },
        { "turboquant:bits=4:values=uniform", 128, 134, 0 },
        { "turboquant:bits=3:rotation=qr:outliers=32:norm=f32", 128, 120, 64 },
        { "fp8:scale=token", 64, 132, 0 },
        { "fp8:scale=token", 80, 164, 0 },
        { "fp8:scale=one", 128, 256, 0 },
    };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const struct kv_shape shape = { 5, 8, 4, at[i].head_dim, DTYPE_F32 };
        const struct config c = config_of(at[i].config);
        struct err err;
        cr_assert_eq(config_check(&c, &shape, &err), 0, "%s", err.msg);
        cr_assert_eq(config_bytes_known(&c, &shape, 1001), 5 * 4 * (1001 * at[i].bytes + at[i].of_head), "%s",
                     at[i].config);
    }
}

/* keys Tq K b/8 + Tq/g K 4 + (n-Tq) 2K, values likewise, over the kept tokens. */
Test(methods, chains_quantise_what_was_kept)
{
    struct config c = config_of("snapkv:drop=0.5+kivi:bits=4");
    int n = 1005; // of 2010; keys: 992 packed, 13 full; values: 973 packed, 32 full
    int64_t head = (992 + 973) * (64 / 2) + (992 + 973) * 2 * 4 + (13 + 32) * 128;

    cr_assert_eq(config_n_keep(&c, &small, 2010, 0), n);
    cr_assert_eq(config_bytes_known(&c, &small, 2010), 6 * head);
}

/* Heads that share a budget keep together what they would keep apart; each has a length of 4 bytes. What a quantiser
 * makes of them depends on the lengths. */
Test(methods, sizes_of_ragged_heads_are_known_until_they_are_packed)
{
    const struct config ada = config_of("adakv+snapkv:drop=0.5"), snap = config_of("snapkv:drop=0.5"),
                        packed = config_of("adakv+snapkv:drop=0.5+kivi:bits=4"), coded = config_of("cachegen");

    cr_assert(config_is_ragged(&ada) && config_is_ragged(&packed) && !config_is_ragged(&snap));
    cr_assert_eq(config_bytes_known(&ada, &llama, 2010), config_bytes_known(&snap, &llama, 2010) + 32 * 8 * 4);
    cr_assert_eq(config_bytes_known(&packed, &llama, 2010), -1);
    cr_assert_eq(config_bytes_known(&coded, &llama, 2010), -1); // on the numbers of any head
    cr_assert_eq(config_keep_frac(&packed, &llama, 2010), 0.5);
}

/* Of all pairs, or of a layer's, (int)(pairs * drop) go, in double: as many as kvpress masks. */
Test(methods, kvzip_drops_as_many_as_kvpress)
{
    static const struct {
        const char *config;
        int n;
        int64_t first, all; // kept of what shares; of all layers
    } at[] = { { "kvzip:drop=0.1", 2067, 167427, 167427 },
               { "kvzip:drop=0.9", 2067, 18603, 18603 },
               { "kvzip:drop=0.1:over=layer", 2067, 5581, 167430 },
               { "kvzip:drop=0.9:over=layer:prefix=kvpress", 2067, 621, 18630 },
               { "kvzip:drop=0.7", 10, 270, 270 },
               { "kvzip:drop=0.7:over=layer", 10, 9, 270 },
               { "kvzip:drop=0", 7, 630, 630 },
               { "kvzip:drop=0.999999", 1, 1, 1 } };
    const struct kv_shape shape = { 30, 9, 3, 64, DTYPE_F32 };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const struct config c = config_of(at[i].config), packed = config_of("kvzip:drop=0.5+kivi:bits=4");
        bool layer = strstr(at[i].config, "layer");
        struct config_share share = config_share(&c, &shape, at[i].n, 0);
        cr_assert(share.layers == (layer ? 1 : 30) && share.pairs == at[i].first && share.floor == 0, "%s: %lld",
                  at[i].config, (long long)share.pairs);
        cr_assert_float_eq(config_keep_frac(&c, &shape, at[i].n), (double)at[i].all / 90 / at[i].n, 1e-12);
        cr_assert_eq(config_bytes_known(&c, &shape, at[i].n), at[i].all * 256 + 90 * 4);
        cr_assert(config_is_ragged(&c) && config_bytes_known(&packed, &shape, at[i].n) == -1);
    }
}

/* The tensors of two heads with 100 and 33 tokens. */
Test(methods, ragged_tensors_have_their_heads_one_after_another)
{
    const struct config ada = config_of("adakv+snapkv:drop=0.5+kivi:bits=4");
    const struct layer_lengths lengths = { 1, (const int[]){ 100, 33 }, 0 };
    static const struct {
        const char *name;
        int n_dims;
        int64_t dim[2];
    } want[] = { { "k", 2, { 4 + 1, 64 } },
                 { "k_codes", 1, { (96 + 32) * 64 / 8, 0 } },
                 { "k_scales", 1, { (96 + 32) * 64 / 32, 0 } },
                 { "k_zeros", 1, { (96 + 32) * 64 / 32, 0 } },
                 { "v", 2, { 32 + 32, 64 } },
                 { "v_codes", 1, { (68 + 1) * 64 / 8, 0 } },
                 { "v_scales", 1, { (68 + 1) * 64 / 32, 0 } },
                 { "v_zeros", 1, { (68 + 1) * 64 / 32, 0 } },
                 { "lengths", 1, { 2, 0 } } };
    struct packed_part part[PART_MAX];

    cr_assert_eq(config_parts(&ada, &small, &lengths, part), 9);
    for (int i = 0; i < 9; i++) {
        cr_assert(strcmp(part[i].name, want[i].name) == 0 && part[i].n_dims == want[i].n_dims, "%s", part[i].name);
        cr_assert(part[i].dim[0] == want[i].dim[0] && part[i].dim[1] == want[i].dim[1], "%s", part[i].name);
    }
}

/* The tensors of two heads: 600 tokens are three chunks, 33 one. Of the streams' bytes only the most are known: two for
 * each symbol, and one for each stream. */
Test(methods, cachegen_has_a_stream_for_each_channel_and_chunk)
{
    const struct config config[] = { config_of("cachegen"), config_of("cachegen:cdf=chunk") };
    const struct kv_shape shape = { 12, 4, 2, 64, DTYPE_F32 };
    static const char *const name[] = { "k",        "v",         "k_streams", "k_sizes", "k_cdfs",
                                        "k_maxima", "v_streams", "v_sizes",   "v_cdfs",  "v_maxima" };
    struct packed_part part[PART_MAX];

    for (int i = 0; i < 4; i++) {
        const struct layer_lengths lengths = { i < 2 ? 2 : 10, (const int[]){ 600, 33 }, 0 };
        int64_t cdfs = i % 2 ? 4 * 64 : 2 * 64;
        cr_assert_eq(config_parts(&config[i % 2], &shape, &lengths, part), 10);
        for (int j = 0; j < 10; j++)
            cr_assert(strcmp(part[j].name, name[j]) == 0 && part[j].at_most == (j == 2 || j == 6), "%s", part[j].name);
        cr_assert(part[2].dim[0] == 2 * 64 * 633 + 4 * 64 && part[6].dim[0] == part[2].dim[0]);
        cr_assert(part[3].dim[0] == 4 * 64 / 2 && part[5].dim[0] == 600 && part[4].dim[0] == cdfs);
        cr_assert(part[4].dim[1] == (i < 2 ? 15 : 7) && part[8].dim[1] == 7); // values have 32 bins up to layer 1
    }
}

Test(methods, cachegen_takes_even_heads)
{
    const struct config config = config_of("cachegen");
    const struct kv_shape odd = { 2, 2, 2, 63, DTYPE_F32 };
    struct err err;

    cr_assert_eq(config_check(&config, &small, &err), 0);
    cr_assert_eq(config_check(&config, &odd, &err), ERR_USAGE);
    cr_assert_str_eq(err.msg, "config 'cachegen': cachegen: the model's head_dim 63 is not even");
}

/* Rows packed of n tokens, around the residual of 32. */
Test(methods, kivi_packs_from_its_residual_on)
{
    static const struct {
        int n, keys, values;
    } at[] = {
        { 1, 0, 0 }, { 31, 0, 0 }, { 32, 32, 0 }, { 33, 32, 1 }, { 63, 32, 31 }, { 64, 64, 32 }, { 65, 64, 33 }
    };
    struct config c = config_of("kivi:bits=4");
    struct packed_part part[PART_MAX];

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const int n[] = { at[i].n, at[i].n };
        cr_assert_eq(config_parts(&c, &small, &(struct layer_lengths){ 0, n, 0 }, part), 8);
        cr_assert_eq(part[0].dim[1], at[i].n - at[i].keys, "%d tokens", at[i].n);
        cr_assert_eq(part[1].dim[2], at[i].keys / 8, "%d tokens", at[i].n);
        cr_assert_eq(part[4].dim[1], at[i].n - at[i].values, "%d tokens", at[i].n);
        cr_assert_eq(part[5].dim[1], at[i].values, "%d tokens", at[i].n);
    }
}

/* libevicpress knows the same methods and parameters by name alone. */
Test(config, names_that_libevicpress_takes)
{
    static const char *const good[] = { "none", "adakv+snapkv:drop=0.5:window=32+kivi:bits=4", "mine:drop=1e-05" };
    static const char *const bad[] = { "",      "snapkv:drop",     "snapkv:drop=", "snapkv:=1", "kivi+",
                                       "+kivi", "snapkv:drop=1:x", "a b",          "3x:drop=1" };
    struct err e;

    for (size_t k = 0; k < sizeof(good) / sizeof(*good); k++)
        cr_assert_eq(config_name_check(good[k], &e), 0, "'%s'", good[k]);
    for (size_t k = 0; k < sizeof(bad) / sizeof(*bad); k++)
        cr_assert_eq(config_name_check(bad[k], &e), ERR_FORMAT, "'%s'", bad[k]);
}

/* Configs: their names, lists and bounds. */
#include "codes/config_name.h"
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
          "keydiff, snapkv, pyramidkv, tova, h2o, streamingllm, kvzip, lagkv, random, cur, expected_attention, "
          "kvzap, impress, arkv, adakv, criticalkv, chunkkv, cam, merge_cos, kivi, cachegen, fp8, int8, int4, nvfp4" },
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
        { "impress:load=50", "load must be a number from 1e-06 to 1, not '50'; did you mean 50%?" },
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
        { "tova:drop=0.5:heads=each", "tova: heads must be all or own, not 'each'" },
        { "tova:drop=0.5:heads=1", "tova: heads must be all or own, not '1'" },
        { "tova:drop=0.5:heads=", "tova: heads must be all or own, not ''" },
        { "tova:drop=0.5:window=1", "tova has no parameter 'window', only drop, heads" },
        { "pyramidkv:drop=0.5:kernel=4", "pyramidkv: kernel must be odd" },
        { "keydiff:drop=0.5+", "no method ''" },
        { "keydiff:drop=0.1..0.9/0.2", "not '0.1..0.9/0.2'" },
    };
    expect_refused(bad, sizeof(bad) / sizeof(*bad));
}

/* kvzip, criticalkv, chunkkv, merging methods, and arkv. */
Test(config, says_what_a_chain_needs)
{
    static const char *const bad[][2] = {
        { "expected_attention:drop=0.5:use_vnorm=1", "expected_attention: use_vnorm must be no or yes, not '1'" },
        { "kvzip:drop=0.5:prefix=keep", "kvzip: prefix must be protect or kvpress, not 'keep'" },
        { "kvzip:drop=0.5:over=head", "kvzip: over must be all or layer, not 'head'" },
        { "adakv+kvzip:drop=0.5", "kvzip shares its budget among heads by itself, so adakv cannot precede it" },
        { "chunkkv+kvzap:drop=0.5", "kvzap shares its budget among heads by itself, so chunkkv cannot precede it" },
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
        { "impress:load=0.5+kivi:bits=4", "impress keeps all tokens, so nothing stands beside it in a chain" },
        { "adakv+impress:load=0.5", "impress keeps all tokens, so nothing stands beside it in a chain" },
        { "impress:load=1.5", "impress: load must be a number from 1e-06 to 1, not '1.5'" },
        { "impress:load=0", "impress: load must be" },
        { "impress:load=0.5:chunk=0", "impress: chunk must be a whole number from 1 to 4096, not '0'" },
        { "impress:load=0.5:reorder=1", "impress: reorder must be no or yes, not '1'" },
        { "impress", "impress needs load, the share of tokens whose chunks are read: impress:load=..." },
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

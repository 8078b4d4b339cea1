/* What making variants takes of the pool is what was counted before; and what happens when something fails. */
#include "tests/unit/cache.h"

#include <criterion/criterion.h>

static const char *const lists[][6] = {
    { "none", NULL },
    { "knorm:drop=0.5", NULL },
    { "kivi:bits=2", NULL },
    { "knorm:drop=0.1", "knorm:drop=0.9", "keydiff:drop=0.5+kivi:bits=4", NULL },
    { "snapkv:drop=0.5:window=16", "snapkv:drop=0.25:window=3", "tova:drop=0.9", NULL },
    { "h2o:drop=0.5", "adakv+h2o:drop=0.5", "streamingllm:drop=0.1", NULL },
    { "pyramidkv:drop=0.5:window=4", "adakv+pyramidkv:drop=0.5:window=4+kivi:bits=4", NULL },
    { "expected_attention:drop=0.5:n_future=8", "criticalkv+knorm:drop=0.5", "criticalkv+tova:drop=0.9+kivi:bits=4",
      NULL },
    { "adakv+knorm:drop=0.3+kivi:bits=2", "kivi:bits=4", "none", NULL },
    { "chunkkv:length=7+knorm:drop=0.5", "chunkkv+knorm:drop=0.3+kivi:bits=4", "knorm:drop=0.5",
      "chunkkv:length=7+knorm:drop=0.4+merge_cos", NULL },
    { "keydiff:drop=0.5:block=8", "keydiff:drop=0.7:block=8", "keydiff:drop=0.7", "keydiff:drop=0.5", NULL },
    { "h2o:drop=0.5:recent=half", "h2o:drop=0.7:recent=half", "h2o:drop=0.7", "random:drop=0.5", "cur:drop=0.5", NULL },
    { "cachegen", "adakv+knorm:drop=0.3+cachegen:cdf=chunk", NULL },
    { "fp8", "fp8:scale=token", "adakv+knorm:drop=0.9+fp8", NULL },
    { "adakv+knorm:drop=0.3+cam:window=16+kivi:bits=2", "snapkv:drop=0.5:window=8+cam:window=3", NULL },
    { "knorm:drop=0.3+merge_cos", NULL },
    { "arkv:drop=0.3:window=8", "arkv:drop=0.7:window=8", "arkv:drop=0.01:window=16", NULL },
    { "kvzip:drop=0.5", "kvzip:drop=0.9:prefix=kvpress:over=layer", NULL },
    { "impress:load=0.1:chunk=3", "impress:load=1:reorder=yes", "h2o:drop=0.5", NULL },
    { "kvzip:drop=0.3+kivi:bits=2", "kvzip:drop=0.6:over=layer+kivi:bits=4", NULL },
    { "int4:group=32", "adakv+knorm:drop=0.5+int8:group=16", "adakv+knorm:drop=0.9+nvfp4", NULL },
    { "turboquant:bits=3", "adakv+knorm:drop=0.5+turboquant:bits=4:rotation=qr:values=uniform", NULL },
};
enum { LISTS = sizeof(lists) / sizeof(*lists) };

static int read_list(const char *const *text, struct config *config, const struct config **list)
{
    int n = 0;

    for (; text[n]; n++) {
        config[n] = config_of(text[n]);
        list[n] = &config[n];
    }
    return n;
}

/* What this list takes when every variant stays: exactly. */
static size_t plan_of(const struct cache *c, const struct config *const *list, int n)
{
    const struct kv_shape *s = &c->full.shape;
    struct memory_need score = configs_score_bytes(list, n, s, c->full.n_tokens);
    size_t rows = 0, max = score.making;

    for (int i = 0; i < n; i++) {
        struct memory_need need = config_variant_bytes(list[i], s, c->full.n_tokens);
        max = rows + need.kept + need.making > max ? rows + need.kept + need.making : max;
        rows += need.kept;
    }
    return score.kept + max;
}

/* The cache as prefill would leave it for this list: with the queries that are asked for. */
static struct kv_full full_for(const struct cache *c, struct pool *pool, const struct config *const *list, int n)
{
    struct kv_full full = c->full;
    unsigned needs;

    full.pool = pool;
    configs_need(list, n, &needs, &full.window);
    full.window = full.window < full.n_tokens ? full.window : full.n_tokens;
    return full;
}

/* Computes the scores in a pool of so many bytes. */
static int score_in(struct cache *c, size_t bytes, const struct config *const *list, int n, struct err *err)
{
    struct pool pool;

    cr_assert_eq(pool_open(&pool, c->be, bytes, err), 0);
    struct kv_full full = full_for(c, &pool, list, n);
    struct compressor *maker = compressor_new(&full, list, n, err);
    int code = maker ? 0 : err->code;
    cr_assert_eq(pool.used, maker ? configs_score_bytes(list, n, &full.shape, full.n_tokens).kept : 0);
    compressor_free(maker);
    pool_close(&pool);
    return code;
}

/* Makes all variants in a pool of so many bytes. */
static int make_in(struct cache *c, size_t bytes, const struct config *const *list, int n, struct err *err)
{
    struct pool pool;
    struct variant v[6] = { 0 };

    cr_assert_eq(pool_open(&pool, c->be, bytes, err), 0);
    struct kv_full full = full_for(c, &pool, list, n);
    struct compressor *maker = compressor_new(&full, list, n, err);
    int code = maker ? 0 : err->code;
    for (int i = 0; i < n && !code; i++) {
        size_t used = pool.used;
        code = compressor_variant(maker, list[i], VARIANT_PAYLOAD, &v[i], err);
        cr_assert_eq(pool.used - used, code ? 0 : config_variant_bytes(list[i], &full.shape, full.n_tokens).kept);
    }
    for (int i = 0; i < n; i++)
        variant_release(&v[i]);
    compressor_free(maker);
    pool_close(&pool);
    return code;
}

/* Exactly so much is needed. */
static void expect_needed(struct cache *c, size_t plan, const struct config *const *list, int n,
                          int (*work)(struct cache *, size_t, const struct config *const *, int, struct err *))
{
    struct err err;

    cr_assert_eq(work(c, plan, list, n, &err), 0, "%s, %d tokens: %s", list[0]->name, c->full.n_tokens, err.msg);
    if (plan == 0)
        return;
    cr_assert_eq(work(c, plan - 1, list, n, &err), ERR_NOMEM, "%s, %d tokens", list[0]->name, c->full.n_tokens);
    cr_assert(strstr(err.msg, "bytes of device memory are needed, but"), "%s", err.msg);
}

Test(variant_memory, is_what_was_planned)
{
    static const int n_tokens[] = { 1, 15, 40, 100 };
    static const char *const dtype[] = { "f32", "bf16" };
    struct config config[6];
    const struct config *list[6];
    struct cache c;

    for (int i = 0; i < 4 * 2 * LISTS; i++) {
        cr_assert(cache_open(&c, "fenced", dtype[i / 4 % 2], n_tokens[i % 4]));
        int n = read_list(lists[i / 8], config, list);
        struct memory_need score = configs_score_bytes(list, n, &c.full.shape, c.full.n_tokens);
        expect_needed(&c, score.kept + score.making, list, n, score_in);
        expect_needed(&c, plan_of(&c, list, n), list, n, make_in);
        cache_release(&c);
    }
}

/* Side outputs as prefill saves them: (L) (G, W, H/G, K) queries, (L * G, T) sums. */
Test(variant_memory, counts_what_prefill_saves)
{
    static const struct kv_shape f32 = { 3, 8, 2, 64, .dtype = DTYPE_F32 }, bf16 = { 3, 8, 2, 64, .dtype = DTYPE_BF16 };
    const struct config c[] = { config_of("snapkv:drop=0.5"), config_of("tova:drop=0.5"), config_of("h2o:drop=0.5"),
                                config_of("knorm:drop=0.5"), config_of("kvzip:drop=0.5") };
    const struct config *list[] = { &c[0], &c[1], &c[2], &c[3], &c[4] };

    cr_assert_eq(configs_side_bytes(list, 1, &f32, 1000), 3 * 64 * 8 * 64 * 4);
    cr_assert_eq(configs_side_bytes(list, 1, &bf16, 1000), 3 * 64 * 8 * 64 * 2);
    cr_assert_eq(configs_side_bytes(list, 1, &bf16, 10), 3 * 10 * 8 * 64 * 2); // no more queries than tokens
    cr_assert_eq(configs_side_bytes(list + 1, 1, &f32, 1000), 3 * 8 * 64 * 4);
    cr_assert_eq(configs_side_bytes(list + 2, 1, &bf16, 1001), 24064); // 6 * 1001 * 4 = 24024, in pieces of 256
    cr_assert_eq(configs_side_bytes(list, 4, &f32, 1000), 3 * 64 * 8 * 64 * 4 + 24064); // 6 * 1000 * 4 = 24000
    cr_assert_eq(configs_side_bytes(list + 3, 1, &f32, 1000), 0);
    cr_assert_eq(configs_side_bytes(list + 4, 1, &bf16, 1001), 24064);
}

/* A whole number of seconds, one later at each look. */
static double seconds;

static double tick(struct backend *be)
{
    (void)be;
    return seconds++;
}

/* A variant counts the scoring that it shares; packing and unpacking are apart. */
Test(variant_memory, times_are_of_each_step)
{
    const struct config config[] = { config_of("none"), config_of("knorm:drop=0.5"), config_of("kivi:bits=2"),
                                     config_of("adakv+knorm:drop=0.5+kivi:bits=2"), config_of("cachegen") };
    static const double want[][2] = { { 0, 0 }, { 2, 0 }, { 1, 1 }, { 3, 1 }, { 2 * L, 2 * L } };
    struct made m[5];
    struct cache c;

    cache_init(&c, 100);
    c.be->clock = tick;
    made_all(&c, config, 5, m);
    for (int i = 0; i < 5; i++) {
        cr_assert(m[i].v.compress_s == want[i][0] && m[i].v.decompress_s == want[i][1], "%s: %g %g", config[i].name,
                  m[i].v.compress_s, m[i].v.decompress_s);
        made_release(&m[i]);
    }
    cache_release(&c);
}

/* ---- failures ----------------------------------------------------------- */

Test(variant_memory, refuses_groups_that_do_not_divide_a_head)
{
    struct cache c;
    struct config config = config_of("kivi:bits=2:group=64:residual=64");
    struct variant v;
    struct err err;

    cache_init(&c, 200);
    struct compressor *maker = compressor_new(&c.full, (const struct config *const[]){ &config }, 1, &err);
    cr_assert_eq(compressor_variant(maker, &config, VARIANT_ROWS, &v, &err), ERR_USAGE);
    cr_assert_str_eq(err.msg, "config 'kivi:bits=2:group=64:residual=64': kivi: the model's head_dim 32 is not a "
                              "multiple of group=64");
    compressor_free(maker);
    cache_release(&c);
}

static int reads_left, syncs_left;
static int (*true_read)(struct backend *, void *, const void *, size_t, struct err *);
static int (*true_sync)(struct backend *, struct err *);

static int failing_read(struct backend *be, void *host, const void *src, size_t bytes, struct err *err)
{
    return reads_left-- > 0 ? true_read(be, host, src, bytes, err) : err_set(err, ERR_DEVICE, "the device is gone");
}

static int failing_sync(struct backend *be, struct err *err)
{
    return syncs_left-- > 0 ? true_sync(be, err) : err_set(err, ERR_DEVICE, "the device is gone");
}

/* The first read or sync fails, then the second, and so on until none does. Returns how many there were. */
static int fail_at_each(int *left)
{
    struct config config = config_of("adakv+knorm:drop=0.5+kivi:bits=2");
    const struct config *list[] = { &config };
    struct cache c;
    struct err err;
    int n = 0, code;

    cache_init(&c, 80);
    true_read = c.be->read;
    true_sync = c.be->sync;
    c.be->read = failing_read;
    c.be->sync = failing_sync;
    do {
        reads_left = syncs_left = 1000;
        *left = n++;
        code = make_in(&c, plan_of(&c, list, 1), list, 1, &err);
        cr_assert(code == 0 || (code == ERR_DEVICE && strstr(err.msg, "the device is gone")), "%s", err.msg);
    } while (code);
    cache_release(&c);
    return n - 1;
}

Test(variant_memory, a_device_failure_ends_the_variant)
{
    /* the rows to be rounded; lengths, positions, six packed tensors of each layer */
    cr_assert_eq(fail_at_each(&reads_left), L * G * 2 + 2 + L * 6);
    cr_assert_geq(fail_at_each(&syncs_left), 2); // scores, the variant; a backend's read may sync too
}

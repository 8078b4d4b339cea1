/* Variants made of a small cache, on every backend that computes methods: what they keep. */
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static const char *const every_method[] = {
    "knorm:drop=0.3",
    "keydiff:drop=0.7",
    "snapkv:drop=0.7:window=16",
    "streamingllm:drop=0.5",
    "pyramidkv:drop=0.5:window=4",
    "tova:drop=0.5",
    "tova:drop=0.5:heads=own",
    "h2o:drop=0.6",
    "lagkv:drop=0.5:lag=16",
    "keydiff:drop=0.4:block=16",
    "h2o:drop=0.6:recent=half",
    "random:drop=0.5:seed=7",
    "cur:drop=0.5",
    "adakv+cur:drop=0.5:block=0",
    "expected_attention:drop=0.5:n_future=40",
    "adakv+expected_attention:drop=0.9:n_future=3:use_vnorm=no",
    "criticalkv+snapkv:drop=0.5:window=4",
    "criticalkv:first_stage_ratio=0:epsilon=0.5+h2o:drop=0.8",
    "keydiff:drop=0",
    "adakv+snapkv:drop=0.5:window=8",
    "adakv:safeguard=0+h2o:drop=0.8",
    "adakv+pyramidkv:drop=0.5:window=4",
    "adakv+tova:drop=0.9",
    "adakv:safeguard=1+knorm:drop=0.25",
    "kvzip:drop=0.5",
    "kvzip:drop=0.97:prefix=kvpress", // a head keeps none
    "kvzip:drop=0.333:over=layer",
    "chunkkv:length=7+h2o:drop=0.5",
    "chunkkv+cur:drop=0.9",
    "impress:load=0.2:chunk=3",
    "impress:load=0.2:chunk=3:reorder=yes:probe=1",
};
enum { METHODS = sizeof(every_method) / sizeof(*every_method) };

Test(variants, none_is_the_cache_itself)
{
    struct cache c;
    struct config config = config_of("none");

    cache_init(&c, 40);
    struct made m = made_of(&c, &config);
    cr_assert(m.v.rows[3].k == c.rows[3].k && m.v.rows[3].n == 40 && !m.v.kept);
    cr_assert(m.v.keep_frac == 1 && m.v.size_frac == 1 && m.v.bytes == kv_bytes(&m.v.shape, 40));
    made_release(&m);
    cache_release(&c);
}

/* Rows of heads follow kept positions, which rise; bytes are those of the tensors, as known before. */
static void expect_rows(const struct cache *c, const struct config *config, const struct made *m)
{
    const struct variant *v = &m->v;
    const int32_t *kept = v->kept;
    int64_t bytes = 0;
    int pairs = 0, T = c->full.n_tokens;

    for (int h = 0; h < L * G; pairs += v->rows[h++].n) {
        for (int i = 0; i < v->rows[h].n; i++, kept = kept ? kept + 1 : NULL) {
            int t = kept ? *kept : i;
            cr_assert(t >= 0 && t < T && (i == 0 || !kept || kept[0] > kept[-1]), "%s", config->name);
            cr_assert_arr_eq(m->k[h] + (size_t)i * K, c->k[h] + (size_t)t * K, K * sizeof(float), "%s", config->name);
            cr_assert_arr_eq(m->rows_v[h] + (size_t)i * K, c->v[h] + (size_t)t * K, K * sizeof(float));
        }
    }
    cr_assert(v->kept || pairs == L * G * T, "%s", config->name);
    bool known = config->knows_rows;
    for (int l = 0, layers; l < L; l += layers) {
        struct config_share share = config_share(config, &v->shape, T, l);
        int64_t sum = 0;
        layers = share.layers ? share.layers : 1;
        for (int h = l * G; h < (l + layers) * G; h++)
            sum += v->rows[h].n;
        cr_assert(known ? sum == share.pairs : sum <= share.pairs, "%s: %d", config->name, (int)sum);
    }
    for (int i = 0; i < L * v->n_parts; i++)
        bytes += (int64_t)packed_part_bytes(&v->parts[i]);
    cr_assert(v->bytes == bytes && config_bytes_known(config, &v->shape, T) == (known ? bytes : -1), "%s",
              config->name);
    cr_assert(!known || fabs(v->keep_frac - config_keep_frac(config, &v->shape, T)) < 1e-12);
    cr_assert_float_eq(v->keep_frac, pairs / (double)(L * G * T), 1e-12);
    cr_assert_float_eq(v->size_frac, (double)bytes / (double)kv_bytes(&v->shape, T), 1e-12);
}

Test(variants, hold_the_rows_they_keep)
{
    for (int b = 0; b < BACKENDS; b++) {
        struct config config[METHODS];
        struct made made[METHODS];
        struct cache c;
        if (!cache_open(&c, backends[b][0], backends[b][1], 100))
            continue;
        for (int m = 0; m < METHODS; m++)
            config[m] = config_of(every_method[m]);
        made_all(&c, config, METHODS, made);
        for (int m = 0; m < METHODS; m++) {
            expect_rows(&c, &config[m], &made[m]);
            made_release(&made[m]);
        }
        cache_release(&c);
    }
}

/* What a lighter drop lets go, a heavier one does not take back, unless each drop has scores of its own. */
Test(variants, keep_less_of_the_same)
{
    struct cache c;

    cache_init(&c, 100);
    for (int m = 0; m < METHODS; m++) {
        struct config config[2] = { config_of(every_method[m]), config_of(every_method[m]) };
        const struct config_stage *drop = &config[0].stage[METHOD_DROP];
        bool kept[L * G][100] = { { false } };
        struct made made[2];
        if (drop->method->drop->scores.by_drop && drop->method->drop->scores.by_drop(drop->value))
            continue;
        for (int i = 0; i < 2; i++)
            config[i].stage[METHOD_DROP].value[0] = i ? 0.8 : 0.1;
        made_all(&c, config, 2, made);
        const int32_t *at = made[0].v.kept;
        for (int h = 0; h < L * G; h++)
            for (int i = 0; i < made[0].v.rows[h].n; i++)
                kept[h][*at++] = true;
        at = made[1].v.kept;
        for (int h = 0; h < L * G && !config[0].ragged; h++)
            for (int i = 0; i < made[1].v.rows[h].n; i++)
                cr_assert(kept[h][*at++], "%s", config[1].name);
        made_release(&made[0]);
        made_release(&made[1]);
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

static void count_columns(struct backend *be, const struct column_job *job)
{
    (void)be, (void)job;
    n_scorings++;
}

static void (*true_copy)(struct backend *, void *, const void *, size_t);

static void count_copy(struct backend *be, void *dst, const void *src, size_t bytes)
{
    n_scorings++;
    true_copy(be, dst, src, bytes);
}

Test(variants, are_scored_once_for_all_drops)
{
    const struct config norms[] = { config_of("knorm:drop=0.1"), config_of("knorm:drop=0.5"),
                                    config_of("knorm:drop=0.5+kivi:bits=2"), config_of("adakv+knorm:drop=0.5") };
    const struct config windows[] = { config_of("snapkv:drop=0.5"), config_of("pyramidkv:drop=0.5"),
                                      config_of("adakv+pyramidkv:drop=0.5:beta=10"),
                                      config_of("snapkv:drop=0.5:kernel=7") };
    const struct config repeats[] = { config_of("kvzip:drop=0.5"), config_of("kvzip:drop=0.1:over=layer"),
                                      config_of("kvzip:drop=0.5+kivi:bits=2"),
                                      config_of("kvzip:drop=0.5:prefix=kvpress") };
    struct made made[4];
    struct cache c;

    cache_init(&c, 80);
    c.be->key_norms = count_norms;
    made_all(&c, norms, 4, made);
    cr_assert_eq(n_scorings, 1);
    for (int i = 0; i < 4; i++)
        made_release(&made[i]);
    n_scorings = 0;
    c.full.window = 64; // more than was saved; no query is read
    c.be->column_stats = count_columns;
    made_all(&c, windows, 4, made);
    cr_assert_eq(n_scorings, 2 * L); // kernel=7 has scores of its own
    for (int i = 0; i < 4; i++)
        made_release(&made[i]);
    n_scorings = 0;
    true_copy = c.be->copy;
    c.be->copy = count_copy;
    made_all(&c, repeats, 4, made);
    cr_assert_eq(n_scorings, 2); // and prefix=kvpress
    for (int i = 0; i < 4; i++)
        made_release(&made[i]);
    cache_release(&c);
}

static void expect_kept(int n_tokens, const char *text, const int32_t *want, int n)
{
    struct cache c;
    struct config config = config_of(text);

    cache_init(&c, n_tokens);
    struct made m = made_of(&c, &config);
    cr_assert_eq(m.v.rows[0].n, n, "%s of %d", text, n_tokens);
    for (int i = 0; i < L * G * n; i++)
        cr_assert_eq(m.v.kept[i], want[i % n], "%s of %d: %d", text, n_tokens, m.v.kept[i]);
    made_release(&m);
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
    for (int i = 0; i < L * 60 * H * K; i++) {
        int token = i / (H * K) % 60, layer = i / (60 * H * K), head = i / K % H;
        int asked = token < 60 - 4 ? 7 : 30;
        c.q[layer][i % (60 * H * K)] = 100 * c.k[layer * G + head / (H / G)][asked * K + i % K];
    }
    cache_write(&c);
    struct made m = made_of(&c, &config);
    for (int i = 0; i < L * G * 5; i++)
        cr_assert_eq(m.v.kept[i], want[i % 5], "head %d: %d", i / 5, m.v.kept[i]);
    made_release(&m);
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

/* ---- methods against their definitions ---------------------------------- */

/* Mean attention of the last w tokens and of query heads first .. first + n - 1. */
static double last_attention(const struct cache *c, int w, int layer, const int head[2], int t)
{
    double sum = 0;
    int T = c->full.n_tokens;

    for (int i = T - w; i < T; i++)
        for (int h = head[0]; h < head[0] + head[1]; h++) {
            double *a = attention_of(c, layer, i, h);
            sum += a[t] / w / head[1];
            free(a);
        }
    return sum;
}

Test(variants, tova_keeps_what_the_last_token_attends_to)
{
    enum { T = 37 };
    double all[L * G * T], own[L * G * T];
    struct cache c;

    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        for (int i = 0; i < L * G * T; i++) {
            int h = i / T, t = i % T;
            all[i] = t == T - 1 ? 2 : last_attention(&c, 1, h / G, (int[2]){ 0, H }, t);
            own[i] = t == T - 1 ? 2 : last_attention(&c, 1, h / G, (int[2]){ h % G * (H / G), H / G }, t);
        }
        expect_best(&c, "tova:drop=0.7", all, 1, 0);
        expect_best(&c, "tova:drop=0.7:heads=own", own, 1, 0);
        expect_best(&c, "adakv+tova:drop=0.7:heads=own", own, G, 2); // (int)(11 * 0.2)
        cache_release(&c);
    }
}

Test(variants, h2o_keeps_what_most_tokens_attend_to)
{
    enum { T = 61 };
    double score[L * G * T];
    struct cache c;

    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        for (int i = 0; i < L * G * T; i++)
            score[i] = (double)c.column_sums[i] / (T - i % T) / (H / (double)G);
        expect_best(&c, "h2o:drop=0.4", score, 1, 0);
        expect_best(&c, "adakv+h2o:drop=0.4", score, G, 7); // (int)(36 * 0.2)
        expect_best(&c, "adakv:safeguard=0+h2o:drop=0.9", score, G, 0);
        expect_best(&c, "adakv:safeguard=0.01+h2o:drop=0.9", score, G, 1); // (int)(6 * 0.01), at least 1
        expect_best(&c, "adakv:safeguard=1+h2o:drop=0.5", score, 1, 0);    // each its own
        cache_release(&c);
    }
}

Test(variants, kvzip_keeps_what_repeating_attends_to)
{
    enum { T = 61, SINK = 4 };
    double protect[L * G * T], kvpress[L * G * T];
    struct cache c;

    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        for (int i = 0; i < L * G * T; i++) {
            protect[i] = i % T < HEAD ? 2 : (double)c.repeat_max[i];
            kvpress[i] = i % T < SINK ? 2 : (double)c.repeat_max[i];
        }
        expect_best(&c, "kvzip:drop=0.4", protect, L * G, 0);
        expect_best(&c, "kvzip:drop=0.4:over=layer", protect, G, 0);
        expect_best(&c, "kvzip:drop=0.4:prefix=kvpress", kvpress, L * G, 0);
        expect_best(&c, "kvzip:drop=0.4:prefix=kvpress:over=layer", kvpress, G, 0);
        expect_best(&c, "kvzip:drop=0.9", protect, L * G, 0); // fewer than the tokens of the template
        c.full.n_head = 0;                                    // no template
        expect_best(&c, "kvzip:drop=0.4", kvpress, L * G, 0);
        cache_release(&c);
    }
}

Test(variants, snapkv_and_pyramidkv_pool_the_attention_of_a_window)
{
    enum { T = 50, WINDOW = 5, KERNEL = 3 };
    double score[L * G * T], raw[T];
    struct cache c;

    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        for (int h = 0; h < L * G; h++) {
            for (int t = 0; t < T - WINDOW; t++)
                raw[t] = last_attention(&c, WINDOW, h / G, (int[2]){ h % G * (H / G), H / G }, t);
            for (int t = 0; t < T; t++)
                score[h * T + t] =
                    t >= T - WINDOW
                        ? 2 + t
                        : ((t > 0 ? raw[t - 1] : 0) + raw[t] + (t < T - WINDOW - 1 ? raw[t + 1] : 0)) / KERNEL;
        }
        expect_best(&c, "snapkv:drop=0.6:window=5:kernel=3", score, 1, 0);
        expect_best(&c, "pyramidkv:drop=0.5:window=5:kernel=3:beta=3", score, 1, 0);
        expect_best(&c, "adakv+snapkv:drop=0.6:window=5:kernel=3", score, G, 4);
        cache_release(&c);
    }
}

/* Heads of one layer may differ, and one may lose everything; any safeguard keeps one pair. */
Test(variants, adakv_may_empty_a_head)
{
    enum { T = 40 };
    const struct config config[] = { config_of("adakv:safeguard=0+knorm:drop=0.5"),
                                     config_of("adakv:safeguard=0.01+knorm:drop=0.5") };
    struct made m[2];
    struct cache c;

    cache_init(&c, T);
    for (int i = 0; i < T * K; i++)
        c.k[0][i] *= 128; // keys of high norm are dropped: all of head 0 of layer 0 before any of head 1
    cache_write(&c);
    made_all(&c, config, 2, m);
    for (int i = 0; i < 2; i++) {
        cr_assert(m[i].v.rows[0].n == i && m[i].v.rows[1].n == T - i && m[i].v.rows[2].n + m[i].v.rows[3].n == T);
        expect_rows(&c, &config[i], &m[i]);
        made_release(&m[i]);
    }
    cache_release(&c);
}

/* For the test below: the last tokens score most, whatever the dropping method says. */
static int score_positions(const struct layer_scores *layer, const double *value, struct err *err)
{
    int T = layer->full->n_tokens;

    (void)err;
    cr_assert(value[0] == 0.5 && layer->drop->value[0] == 0.75 && layer->n_keep == 10 && layer->length[G - 1] == 10);
    for (int i = 0; i < G * T; i++)
        layer->score[i] = (float)(i % T);
    return 0;
}

/* Only the variant behind a budget sees the scores that it rewrites. */
Test(variants, a_budget_rewrites_scores)
{
    enum { T = 40, KEPT = 10 };
    static const struct method_budget budget = { .rescore = score_positions };
    static const struct method last = { .name = "last", .budget = &budget };
    const struct config plain = config_of("knorm:drop=0.75");
    struct config rewritten = config_of("adakv:safeguard=0.5+knorm:drop=0.75");
    struct cache c;
    struct made m[3];

    rewritten.stage[METHOD_BUDGET].method = &last;
    rewritten.budget = &budget;
    rewritten.ragged = false;
    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        made_all(&c, (struct config[]){ plain, rewritten, plain }, 3, m);
        for (int i = 0; i < L * G * KEPT; i++)
            cr_assert_eq(m[1].v.kept[i], T - KEPT + i % KEPT, "head %d: %d", i / KEPT, m[1].v.kept[i]);
        cr_assert_arr_eq(m[2].v.kept, m[0].v.kept, L * G * KEPT * sizeof(int32_t));
        cr_assert(memcmp(m[0].v.kept, m[1].v.kept, L * G * KEPT * sizeof(int32_t)) != 0);
        for (int i = 0; i < 3; i++)
            made_release(&m[i]);
        cache_release(&c);
    }
}

/* What dropping methods keep of a small cache, on every backend, against their definitions. */
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <math.h>

/* With the recent half, each drop has scores of its own: the raw sums, and the last tokens above all of them. */
Test(dropping, h2o_keeps_the_recent_half)
{
    enum { T = 61 };
    double score[L * G * T];
    struct cache c;

    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        for (int i = 0; i < L * G * T; i++)
            score[i] = i % T >= T - 36 / 2 ? 1e6 : (double)c.column_sums[i];
        expect_best(&c, "h2o:drop=0.4:recent=half", score, 1, 0);
        expect_best(&c, "adakv+h2o:drop=0.4:recent=half", score, G, 7);
        for (int i = 0; i < L * G * T; i++)
            score[i] = i % T >= T - 3 / 2 ? 1e6 : (double)c.column_sums[i];
        expect_best(&c, "h2o:drop=0.95:recent=half", score, 1, 0);
        for (int i = 0; i < L * G * T; i++)
            score[i] = (double)c.column_sums[i];
        expect_best(&c, "h2o:drop=0.98:recent=half", score, 1, 0); // one pair has no recent half
        cache_release(&c);
    }
}

static double cosine(const float *x, const double *y)
{
    double dot = 0, xx = 0, yy = 0;

    for (int j = 0; j < K; j++) {
        dot += (double)x[j] * y[j];
        xx += (double)x[j] * (double)x[j];
        yy += y[j] * y[j];
    }
    return dot / sqrt(xx * yy);
}

/* -cos to the mean direction of all keys of a head that are in the cache. */
static void score_cache(const float *k, const bool *in, int n, double *score)
{
    double mean[K] = { 0 };

    for (int t = 0; t < n; t++) {
        double squares = 0;
        for (int j = 0; j < K; j++)
            squares += (double)k[t * K + j] * (double)k[t * K + j];
        for (int j = 0; j < K && in[t]; j++)
            mean[j] += (double)k[t * K + j] / sqrt(squares);
    }
    for (int t = 0; t < n; t++)
        score[t] = in[t] ? -cosine(k + (ptrdiff_t)t * K, mean) : -9;
}

/* What is in the cache after all blocks: 1, the rest 0. */
static void read_blocks(const float *k, int n, int n_keep, int block, double *kept)
{
    bool in[100] = { false };
    double score[100];

    for (int t = 0; t < n_keep; t++)
        in[t] = true;
    for (int end = n_keep + block; end < n + block; end += block) {
        int last = end < n ? end : n, count = 0;
        for (int t = end - block; t < last; t++)
            in[t] = true;
        score_cache(k, in, n, score);
        for (int t = 0; t < n; t++)
            count += in[t];
        for (; count > n_keep; count--) {
            int worst = 0;
            for (int t = 0; t < n; t++)
                if (in[t] && (!in[worst] || score[t] < score[worst]))
                    worst = t;
            in[worst] = false;
        }
    }
    for (int t = 0; t < n; t++)
        kept[t] = in[t];
}

Test(dropping, keydiff_reads_block_by_block)
{
    static const struct {
        const char *config;
        int n_keep, block;
    } at[] = { { "keydiff:drop=0.4:block=7", 36, 7 },
               { "keydiff:drop=0.7:block=7", 18, 7 },
               { "keydiff:drop=0.95:block=1", 3, 1 },
               { "keydiff:drop=0.5:block=30", 30, 30 },
               { "keydiff:drop=0.7:block=999", 18, 999 } };
    enum { T = 61 };
    double kept[L * G * T];
    struct cache c;

    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
            for (int h = 0; h < L * G; h++)
                read_blocks(c.k[h], T, at[i].n_keep, at[i].block, kept + (ptrdiff_t)h * T);
            expect_best(&c, at[i].config, kept, 1, 0);
        }
        cache_release(&c);
    }
}

/* Of two drops made together each has its own blocks. */
Test(dropping, keydiff_scores_each_drop)
{
    const struct config config[] = { config_of("keydiff:drop=0.4:block=16"), config_of("keydiff:drop=0.8:block=16") };
    struct cache c;
    struct made both[2];

    cache_init(&c, 100);
    made_all(&c, config, 2, both);
    for (int i = 0; i < 2; i++) {
        struct made alone = made_of(&c, &config[i]);
        cr_assert_arr_eq(both[i].v.kept, alone.v.kept, (size_t)(L * G * alone.v.rows[0].n) * sizeof(int32_t));
        made_release(&alone);
        made_release(&both[i]);
    }
    cache_release(&c);
}

/* Drawn by SplitMix64 and XXH3 as other programs implement them: heads of all layers, each from a stream of its own. */
Test(dropping, random_draws_by_head)
{
    static const struct {
        const char *config;
        int32_t kept[L * G * 3];
    } at[] = { { "random:drop=0.9", { 1, 17, 18, 23, 25, 28, 15, 16, 27, 6, 29, 35 } },
               { "random:drop=0.9:seed=7", { 14, 16, 29, 12, 16, 21, 3, 19, 38, 0, 29, 34 } } };

    for (int b = 0; b < BACKENDS; b++) {
        struct cache c;
        if (!cache_open(&c, backends[b][0], backends[b][1], 40))
            continue;
        for (int i = 0; i < 2; i++) {
            struct config config = config_of(at[i].config);
            struct made m = made_of(&c, &config);
            cr_assert_eq(m.v.rows[0].n, 3); // int(40 * 0.1) in double is 3
            cr_assert_arr_eq(m.v.kept, at[i].kept, sizeof(at[i].kept), "%s", at[i].config);
            made_release(&m);
        }
        cache_release(&c);
    }
}

/* |x_t|^2 of a head's rows; with blocks over the sum of the block. */
static void squares_of(const float *x, int n, int block, double *s)
{
    for (int t = 0; t < n; t++) {
        s[t] = 0;
        for (int j = 0; j < K; j++)
            s[t] += (double)x[t * K + j] * (double)x[t * K + j];
    }
    for (int first = 0; block && first < n; first += block) {
        double sum = 0;
        for (int t = first; t < first + block && t < n; t++)
            sum += s[t];
        for (int t = first; t < first + block && t < n; t++)
            s[t] /= sum;
    }
}

Test(dropping, cur_keeps_what_is_long_for_its_block)
{
    static const struct {
        const char *config;
        int block, n_sink, group;
        bool k, v;
    } at[] = { { "cur:drop=0.5", 16, 4, 1, true, true },
               { "cur:drop=0.7:block=7:n_sink=0", 7, 0, 1, true, true },
               { "cur:drop=0.7:leverage=key", 16, 4, 1, true, false },
               { "cur:drop=0.7:leverage=value:block=0", 0, 4, 1, false, true },
               { "adakv:safeguard=0+cur:drop=0.7", 16, 4, G, true, true } };
    enum { T = 61 };
    double score[L * G * T], k2[T], v2[T];
    struct cache c;

    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
            for (int h = 0; h < L * G; h++) {
                double sum = 0;
                squares_of(c.k[h], T, at[i].block, k2);
                squares_of(c.v[h], T, at[i].block, v2);
                for (int t = 0; t < T; t++)
                    sum += score[h * T + t] = (at[i].k ? k2[t] : 1) * (at[i].v ? v2[t] : 1);
                for (int t = 0; t < T; t++)
                    score[h * T + t] = t < at[i].n_sink ? 1 : score[h * T + t] / sum;
            }
            expect_best(&c, at[i].config, score, at[i].group, 0);
        }
        for (int h = 0; h < L * G; h++) {
            squares_of(c.k[h], T, 16, k2);
            squares_of(c.v[h], T, 16, v2);
            for (int t = 0; t < T; t++)
                score[h * T + t] = t < 4 ? 9 : k2[t] + v2[t];
        }
        expect_best(&c, "cur:drop=0.7:leverage=kv_avg", score, 1, 0);
        cache_release(&c);
    }
}

static double norm(const float *x)
{
    double squares = 0;

    for (int j = 0; j < K; j++)
        squares += (double)x[j] * (double)x[j];
    return sqrt(squares);
}

/* The positions of the best chunks of a layer: how many. */
static int best_chunks(const struct cache *c, int layer, const int shape[2], int32_t *kept)
{
    int T = c->full.n_tokens, length = shape[0], n_chunks = (T + length - 1) / length, n = 0;
    double score[100] = { 0 };

    for (int t = 0; t < T; t++)
        for (int h = layer * G; h < (layer + 1) * G; h++) {
            int chunk = t / length, end = (chunk + 1) * length < T ? (chunk + 1) * length : T;
            score[chunk] -= norm(c->k[h] + (ptrdiff_t)t * K) / (end - chunk * length);
        }
    for (int t = 0; t < T; t++) {
        int above = 0;
        for (int k = 0; k < n_chunks; k++)
            above += score[k] > score[t / length];
        if (above < shape[1])
            kept[n++] = t;
    }
    return n;
}

/* Head h keeps the n positions `want`; `is` are the variant's from this head on, NULL: all. Returns those of the
 * next. */
static const int32_t *expect_kept(const struct made *m, int h, const int32_t *is, const int32_t *want, int n)
{
    const char *name = m->v.config->name;

    cr_assert_eq(m->v.rows[h].n, n, "%s: head %d: %d, not %d", name, h, m->v.rows[h].n, n);
    cr_assert(is ? memcmp(is, want, (size_t)n * sizeof(*want)) == 0 : n == m->v.n_tokens, "%s", name);
    return is ? is + n : NULL;
}

/* All heads of a layer keep the same chunks; the last one, shorter, is among them in the first layer alone. */
Test(dropping, chunkkv_keeps_whole_chunks)
{
    static const struct {
        const char *config;
        int shape[2]; // tokens of a chunk, chunks kept
    } at[] = { { "chunkkv:length=7+knorm:drop=0.5", { 7, 4 } },
               { "chunkkv:length=7+knorm:drop=0.8", { 7, 1 } },
               { "chunkkv:length=1+knorm:drop=0.5", { 1, 30 } },
               { "chunkkv:length=61+knorm:drop=0.5", { 61, 1 } },
               { "chunkkv+knorm:drop=0.3", { 20, 2 } } };
    enum { T = 61 };
    int32_t kept[T];

    for (int b = 0; b < BACKENDS; b++) {
        struct cache c;
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        for (int h = 0; h < L * G; h++)
            for (int i = 56 * K; i < T * K; i++)
                c.k[h][i] *= h < G ? 0.5F : 2;
        cache_write(&c);
        for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
            struct config config = config_of(at[i].config);
            struct made m = made_of(&c, &config);
            const int32_t *is = m.v.kept;
            for (int h = 0; h < L * G; h++) {
                int n = best_chunks(&c, h / G, at[i].shape, kept);
                is = expect_kept(&m, h, is, kept, n);
            }
            cr_assert(i > 0 || (m.v.rows[0].n == 3 * 7 + 61 % 7 && m.v.rows[G].n == 4 * 7));
            made_release(&m);
        }
        cache_release(&c);
    }
}

struct impress {
    double load;
    int probe, chunk;
    bool reorder;
};

/* How many tokens of a layer matter more than token t. */
static int rank_of(const struct cache *c, int layer, int probe, int t)
{
    int T = c->full.n_tokens, rank = 0;
    double sum[2] = { 0 };

    for (int u = 0; u < T; u++) {
        sum[0] = sum[1] = 0;
        for (int g = 0; g < probe && g < G; g++) {
            sum[0] += (double)c->column_sums[(layer * G + g) * T + t];
            sum[1] += (double)c->column_sums[(layer * G + g) * T + u];
        }
        rank += sum[1] > sum[0] || (sum[1] == sum[0] && u < t);
    }
    return rank;
}

/* The positions that a layer reads; returns how many. */
static int read_positions(const struct cache *c, int layer, const struct impress *x, int32_t *at)
{
    int T = c->full.n_tokens, n = 0, important = (int)ceil(T * x->load);
    bool *chunk = calloc((size_t)T, sizeof(*chunk));

    for (int t = 0; t < T; t++) {
        int rank = rank_of(c, layer, x->probe, t);
        if (rank < important)
            chunk[(x->reorder ? rank : t) / x->chunk] = true;
    }
    for (int t = 0; t < T; t++)
        if (chunk[(x->reorder ? rank_of(c, layer, x->probe, t) : t) / x->chunk])
            at[n++] = t;
    free(chunk);
    return n;
}

/* Chunks with important tokens are read, in all heads of a layer; all is kept. */
Test(dropping, impress_reads_chunks_of_important_tokens)
{
    static const struct {
        const char *config;
        struct impress x;
    } at[] = { { "impress:load=0.05:chunk=7", { 0.05, 3, 7, false } },
               { "impress:load=0.25:chunk=7", { 0.25, 3, 7, false } },
               { "impress:load=0.5:chunk=2:probe=1", { 0.5, 1, 2, false } },
               { "impress:load=0.25", { 0.25, 3, 64, false } }, // one chunk
               { "impress:load=0.000001:chunk=1", { 0.000001, 3, 1, false } },
               { "impress:load=1:chunk=7", { 1, 3, 7, false } },
               { "impress:load=0.05:chunk=7:reorder=yes", { 0.05, 3, 7, true } },
               { "impress:load=0.25:chunk=7:reorder=yes:probe=1", { 0.25, 1, 7, true } },
               { "impress:load=0.95:chunk=7:reorder=yes", { 0.95, 3, 7, true } },
               { "impress:load=1:reorder=yes", { 1, 3, 64, true } } };
    enum { T = 61 };
    int32_t kept[T];

    for (int b = 0; b < BACKENDS; b++) {
        struct cache c;
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
            struct config config = config_of(at[i].config);
            struct made m = made_of(&c, &config);
            const int32_t *is = m.v.kept;
            int64_t bytes = (int64_t)L * G * (T * 4 * K + 4) + (at[i].x.reorder ? L * T * 4 : 0), read = bytes;
            for (int h = 0; h < L * G; h++) {
                int n = read_positions(&c, h / G, &at[i].x, kept);
                is = expect_kept(&m, h, is, kept, n);
                read -= (int64_t)(T - n) * 2 * K * (h % G < at[i].x.probe ? 1 : 2); // the values alone of a probe head
            }
            cr_assert(m.v.bytes == bytes && m.v.bytes_read == read, "%s: %lld, %lld", at[i].config,
                      (long long)m.v.bytes_read, (long long)read);
            made_release(&m);
        }
        cache_release(&c);
    }
}

/* Whole chunks: how many rows they are depends on the last, shorter one. */
Test(dropping, chunkkv_keeps_at_most_so_many_rows)
{
    static const struct {
        int n;
        const char *config;
        int most;
    } at[] = { { 2067, "chunkkv+snapkv:drop=0.5", 1040 }, // 52 of 104 chunks, the last of 7 tokens
               { 2067, "chunkkv+snapkv:drop=0.99", 20 },
               { 2067, "chunkkv+snapkv:drop=0.999", 20 }, // at least one
               { 2067, "chunkkv+snapkv:drop=0.001", 2060 },
               { 2067, "chunkkv+snapkv:drop=0", 2067 },
               { 2060, "chunkkv+snapkv:drop=0", 2060 },
               { 20, "chunkkv+snapkv:drop=0.5", 20 }, // one chunk
               { 19, "chunkkv+snapkv:drop=0.5", 9 },  // none: left to snapkv
               { 21, "chunkkv:length=20+pyramidkv:drop=0.5", 20 } };
    const struct kv_shape shape = { 3, 4, 2, 64, .dtype = DTYPE_F32 };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const struct config c = config_of(at[i].config);
        cr_assert(c.ragged && !c.knows_rows && config_bytes_known(&c, &shape, at[i].n) == -1);
        cr_assert_eq(config_n_keep(&c, &shape, at[i].n, 1), at[i].most, "%s of %d: %d", at[i].config, at[i].n,
                     config_n_keep(&c, &shape, at[i].n, 1));
    }
}

/* Shorter than a chunk: as without. */
Test(dropping, chunkkv_leaves_short_contexts_alone)
{
    const struct config config[] = { config_of("chunkkv:length=30+knorm:drop=0.5"), config_of("knorm:drop=0.5") };
    struct cache c;
    struct made m[2];

    cache_init(&c, 29);
    made_all(&c, config, 2, m);
    cr_assert_arr_eq(m[0].v.kept, m[1].v.kept, L * G * 14 * sizeof(int32_t));
    cr_assert_eq(m[0].v.rows[0].n, 14);
    made_release(&m[0]);
    made_release(&m[1]);
    cache_release(&c);
}

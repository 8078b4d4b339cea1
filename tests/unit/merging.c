/* What merging methods make of the values of kept rows, on every backend, against their definitions. */
#include "codes/half.h"
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <math.h>

enum { T = 90, WINDOW = 5, NEXT = 32 };

static bool is_kept(const int32_t *kept, int n, int t)
{
    for (int i = 0; i < n; i++)
        if (kept[i] == t)
            return true;
    return false;
}

/* Mean attention of the last WINDOW tokens and the group to each key. */
static void observe(const struct cache *c, int h, double *a)
{
    memset(a, 0, T * sizeof(*a));
    for (int i = T - WINDOW; i < T; i++)
        for (int q = 0; q < H / G; q++) {
            double *one = attention_of(c, h / G, i, h % G * (H / G) + q);
            for (int t = 0; t < T; t++)
                a[t] += one[t] / WINDOW / (H / G);
            free(one);
        }
}

/* want (n, K): cam's values of head h. */
static void cam(const struct cache *c, int h, const int32_t *kept, int n, double *want)
{
    double a[T];

    observe(c, h, a);
    for (int e = 0; e < T; e++) {
        double sum = 0;
        int first = 0, count = 0;
        while (first < n && kept[first] < e)
            first++;
        for (; !is_kept(kept, n, e) && first + count < n && count < NEXT; count++)
            sum += a[kept[first + count]];
        double p = count ? fmin(1, a[e] / (sum / count)) : 0;
        for (int j = 0; j < count * K; j++)
            want[first * K + j] += p / NEXT * (double)c->v[h][e * K + j % K];
    }
}

static double dot(const float *a, const float *b)
{
    double sum = 0;

    for (int i = 0; i < K; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static double norm(const float *a)
{
    return sqrt(dot(a, a));
}

/* want (n, K): merge_cos' values of head h. */
static void merge_cos(const struct cache *c, int h, const int32_t *kept, int n, double *want)
{
    double weight[T] = { 0 };

    for (int e = 0; e < T; e++) {
        const float *k = c->k[h] + e * K, *v = c->v[h] + e * K;
        double most = -2;
        int to = 0;
        for (int i = 0; i < n; i++) {
            double s = dot(k, c->k[h] + kept[i] * K) / norm(k) / norm(c->k[h] + kept[i] * K);
            to = s > most ? i : to;
            most = fmax(most, s);
        }
        double w = is_kept(kept, n, e) ? 0 : fmax(0, most) * norm(v) / (norm(v) + norm(c->v[h] + kept[to] * K) + 1e-6);
        weight[to] += w;
        for (int j = 0; j < K; j++)
            want[to * K + j] += w * (double)v[j];
    }
    for (int j = 0; j < n * K; j++)
        want[j] /= 1 + weight[j / K];
}

/* Keys are the cache's, values as defined, rounded to bf16; bytes are those of the dropping method. */
static void expect_merged(struct cache *c, const char *chain,
                          void (*define)(const struct cache *, int, const int32_t *, int, double *))
{
    struct config config = config_of(chain), without = config;
    struct made m = made_of(c, &config);
    static int32_t every[L * G * T]; // where nothing is dropped
    const int32_t *kept = m.v.kept ? m.v.kept : every;

    for (int i = 0; i < L * G * T; i++)
        every[i] = i % T;
    without.merge = NULL;
    cr_assert_eq(m.v.bytes, config_bytes_known(&without, &m.v.shape, T));
    cr_assert_eq(m.v.bytes, config_bytes_known(&config, &m.v.shape, T));
    for (int h = 0; h < L * G; kept += m.v.rows[h++].n) {
        double want[T * K];
        int n = m.v.rows[h].n, changed = 0;
        for (int i = 0; i < n * K; i++) {
            cr_assert_eq(m.k[h][i], c->k[h][kept[i / K] * K + i % K], "%s: keys stay", chain);
            want[i] = (double)c->v[h][kept[i / K] * K + i % K];
            changed += m.rows_v[h][i] != c->v[h][kept[i / K] * K + i % K];
        }
        define(c, h, kept, n, want);
        for (int i = 0; i < n * K; i++) {
            double got = (double)m.rows_v[h][i];
            cr_assert_eq(m.rows_v[h][i], bf16_to_f32(bf16_from_f32(m.rows_v[h][i])), "%s: as payloads hold them",
                         chain);
            cr_assert_float_eq(got, want[i], 1e-5 + fabs(want[i]) / 255, "%s: head %d row %d: %g for %g", chain, h,
                               i / K, got, want[i]);
        }
        cr_assert(n == T || n == 0 || changed > 0, "%s: head %d", chain, h);
    }
    made_release(&m);
}

Test(merging, follows_the_definitions)
{
    for (int b = 0; b < BACKENDS; b++) {
        struct cache c;
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        expect_merged(&c, "snapkv:drop=0.5:window=5+cam:window=5", cam);
        expect_merged(&c, "knorm:drop=0.7+cam:window=5", cam);
        expect_merged(&c, "adakv:safeguard=0+knorm:drop=0.5+cam:window=5", cam);
        expect_merged(&c, "knorm:drop=0+cam:window=5", cam);
        expect_merged(&c, "snapkv:drop=0.5:window=5+merge_cos", merge_cos);
        expect_merged(&c, "adakv:safeguard=0+knorm:drop=0.8+merge_cos", merge_cos);
        cache_release(&c);
    }
}

/* Nothing is merged where no cosine reaches the threshold. */
Test(merging, merge_cos_has_a_threshold)
{
    const struct config config[] = { config_of("knorm:drop=0.5"), config_of("knorm:drop=0.5+merge_cos:threshold=1") };
    struct made m[2];
    struct cache c;

    cache_init(&c, T);
    made_all(&c, config, 2, m);
    for (int h = 0; h < L * G; h++)
        cr_assert_arr_eq(m[0].rows_v[h], m[1].rows_v[h], (size_t)(m[0].v.rows[h].n * K) * sizeof(float));
    made_release(&m[0]);
    made_release(&m[1]);
    cache_release(&c);
}

/* A drawn merge is the same for the same seed, another for another, and the expected one on average. */
Test(merging, cam_draws_by_its_seed)
{
    enum { DRAWS = 400 };
    static const char chain[] = "knorm:drop=0.5+cam:window=5:sample=bernoulli";
    double sum = 0, squares = 0;
    struct config expected = config_of("knorm:drop=0.5+cam:window=5");
    struct made first, again, mean;
    struct cache c;

    cache_init(&c, T);
    mean = made_of(&c, &expected);
    size_t mark = pool_mark(&c.pool);
    for (int seed = 0; seed < DRAWS; seed++) {
        char text[80];
        snprintf(text, sizeof(text), "%s:seed=%d", chain, seed);
        struct config config = config_of(text);
        struct made m = made_of(&c, &config);
        double x = (double)m.rows_v[1][7 * K + 3];
        sum += x;
        squares += x * x;
        made_release(&m);
        pool_reset(&c.pool, mark);
    }
    double average = sum / DRAWS, error = sqrt((squares / DRAWS - average * average) / DRAWS);
    cr_assert(error > 0 && fabs(average - (double)mean.rows_v[1][7 * K + 3]) < 4 * error + 2e-3, "%g for %g, +- %g",
              average, (double)mean.rows_v[1][7 * K + 3], error);
    struct config seeded[] = { config_of("knorm:drop=0.5+cam:window=5:sample=bernoulli:seed=1"),
                               config_of("knorm:drop=0.5+cam:window=5:sample=bernoulli:seed=2") };
    first = made_of(&c, &seeded[0]);
    again = made_of(&c, &seeded[0]);
    cr_assert_arr_eq(first.rows_v[0], again.rows_v[0], (size_t)(first.v.rows[0].n * K) * sizeof(float));
    made_release(&again);
    again = made_of(&c, &seeded[1]);
    cr_assert_neq(memcmp(first.rows_v[0], again.rows_v[0], (size_t)(first.v.rows[0].n * K) * sizeof(float)), 0);
    made_release(&again);
    made_release(&first);
    made_release(&mean);
    cache_release(&c);
}

/* A quantiser after a merge packs the merged values. */
Test(merging, is_quantised_after)
{
    const struct config config[] = { config_of("knorm:drop=0.2+merge_cos"),
                                     config_of("knorm:drop=0.2+merge_cos+kivi:bits=4") };
    struct made m[2];
    struct cache c;

    cache_init(&c, T);
    made_all(&c, config, 2, m);
    for (int h = 0; h < L * G; h++)
        for (int i = 0; i < m[0].v.rows[h].n * K; i++)
            cr_assert_float_eq(m[1].rows_v[h][i], m[0].rows_v[h][i], 2. / 15 / 2 + 0.01);
    made_release(&m[0]);
    made_release(&m[1]);
    cache_release(&c);
}

static int n_scorings;

static void count_columns(struct backend *be, const struct column_job *job)
{
    (void)be, (void)job;
    n_scorings++;
}

Test(merging, observes_once_for_all_drops)
{
    const struct config config[] = { config_of("knorm:drop=0.1+cam:window=5"),
                                     config_of("keydiff:drop=0.5+cam:window=5:sample=bernoulli:seed=3"),
                                     config_of("knorm:drop=0.9+cam:window=5") };
    struct made m[3];
    struct cache c;

    cache_init(&c, T);
    c.be->column_stats = count_columns;
    made_all(&c, config, 3, m);
    cr_assert_eq(n_scorings, L);
    for (int i = 0; i < 3; i++)
        made_release(&m[i]);
    cache_release(&c);
}

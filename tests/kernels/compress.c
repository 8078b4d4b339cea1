/* What the compression methods ask for: scores, pooling, budgets, selection; against the reference and by hand. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- scores of keys ----------------------------------------------------- */

static const struct {
    int heads, n, K;
} caches[] = { { 1, 1, 16 },   { 3, 5, 64 },     { 2, 70, 20 },  { 2, 1023, 20 }, { 3, 1024, 64 }, { 2, 1025, 20 },
               { 1, 3, 1024 }, { 2, 1100, 128 }, { 2, 40, 256 }, { 2, 37, 264 },  { 260, 1, 16 },  { 2, 5, 1022 } };
enum { N_CACHES = sizeof(caches) / sizeof(*caches), MAX_HEADS = 8 };

/* Heads of n[h] rows of K columns one after another. */
struct layout {
    int n_heads, K;
    const int *n;
};

static void heads_of(const struct backend *be, struct kv_rows *heads, struct layout of, void *k, void *v)
{
    size_t at = 0;

    for (int h = 0; h < of.n_heads; at += (size_t)(of.n[h++] * of.K))
        heads[h] = (struct kv_rows){ stored_at(be, k, at), v ? stored_at(be, v, at) : NULL, of.n[h] };
}

static float *key_scores(struct backend *be, int i, bool cosines)
{
    int H = caches[i].heads, n = caches[i].n, K = caches[i].K;
    void *k = stored(be, "k", (size_t)(H * n * K));
    float *score = space(be, (size_t)(H * n));
    struct kv_rows *heads = calloc((size_t)H, sizeof(*heads));
    int *lengths = calloc((size_t)H, sizeof(*lengths));

    for (int h = 0; h < H; h++)
        lengths[h] = n;
    heads_of(be, heads, (struct layout){ H, K, lengths }, k, NULL);
    (cosines ? be->key_cosines : be->key_norms)(be, score, heads, H, K);
    free(heads);
    free(lengths);
    be->free(be, k);
    return score;
}

static void check_key_scores(const struct pair *p)
{
    const struct tolerances norms = { { 0, 1e-6 }, { 0, 1e-6 } }, cosines = { { 2e-6, 0 }, { 2e-6, 0 } };

    for (int i = 0; i < N_CACHES; i++) {
        size_t n = (size_t)(caches[i].heads * caches[i].n);
        same_floats(p, (struct results){ key_scores(p->want, i, false), key_scores(p->got, i, false), n }, norms,
                    "key_norms");
        same_floats(p, (struct results){ key_scores(p->want, i, true), key_scores(p->got, i, true), n }, cosines,
                    "key_cosines");
    }
}

Test(kernels, key_scores)
{
    each_pair(check_key_scores);
}

/* Heads of different lengths, the first and one more of none: their scores follow one another. */
static void check_ragged_scores(const struct pair *p)
{
    enum { HEADS = 6, N = 7 + 1030 + 1 + 300, K = 24 };
    static const int lengths[HEADS] = { 0, 7, 1030, 0, 1, 300 };
    struct results r[2] = { { .n = N }, { .n = N } };

    for (int side = 0; side < 2; side++) {
        struct backend *be = side ? p->got : p->want;
        void *k = stored(be, "k", N * K);
        float *score[2] = { space(be, N), space(be, N) };
        struct kv_rows heads[HEADS];
        heads_of(be, heads, (struct layout){ HEADS, K, lengths }, k, NULL);
        be->key_norms(be, score[0], heads, HEADS, K);
        be->key_cosines(be, score[1], heads, HEADS, K);
        for (int i = 0; i < 2; i++)
            *(side ? &r[i].got : &r[i].want) = score[i];
        must_sync(be);
        be->free(be, k);
    }
    same_floats(p, r[0], (struct tolerances){ { 0, 1e-6 }, { 0, 1e-6 } }, "key_norms of ragged heads");
    same_floats(p, r[1], (struct tolerances){ { 2e-6, 0 }, { 2e-6, 0 } }, "key_cosines of ragged heads");
}

Test(kernels, key_scores_of_ragged_heads)
{
    each_pair(check_ragged_scores);
}

/* Keys of length 0, as short as the smallest lengths that are divided by, and opposite ones whose mean is 0. */
static void check_short_keys(const struct pair *p)
{
    enum { N = 4, K = 8 };
    const float scales[N] = { 0, 0x1p-30f, 0x1p-41f, 1 };
    const struct tolerances within = { { 2e-6, 1e-5 }, { 2e-6, 1e-5 } };
    float host[N * K];
    struct results r = { .n = N };

    for (int set = 0; set < 3; set++) { // with the long key; short ones alone; opposite ones
        for (int i = 0; i < N * K; i++)
            host[i] = set == 2                     ? (float)((1 + i % K) * (i / K % 2 ? -1 : 1))
                      : set == 1 && i / K == N - 1 ? 0
                                                   : scales[i / K] * (float)(1 + i % 3);
        for (int side = 0; side < 2; side++) {
            struct backend *be = side ? p->got : p->want;
            void *k = stored_from(be, host, N * K);
            float *score = space(be, N);
            be->key_cosines(be, score, &(struct kv_rows){ k, NULL, N }, 1, K);
            *(side ? &r.got : &r.want) = score;
            must_sync(be);
            be->free(be, k);
        }
        same_floats(p, r, within, "key_cosines of short keys");
    }
}

Test(kernels, key_cosines_of_short_keys)
{
    each_pair(check_short_keys);
}

static void expect(const struct pair *p, float *device, const double *want, size_t n, double eps)
{
    float *got = read_numbers(p->got, device, n, "by hand");

    for (size_t i = 0; i < n; i++)
        cr_assert(fabs((double)got[i] - want[i]) <= eps, "%s: %zu: %g, not %g", p->name, i, (double)got[i], want[i]);
    free(got);
}

/* The mean direction of (3,4), (0,2), (5,0) is ((.6,.8) + (0,1) + (1,0)) / 3 = (1.6, 1.8) / 3. */
static void check_keys_by_hand(const struct pair *p)
{
    struct backend *be = p->got;
    const float keys[] = { 3, 4, 0, 2, 5, 0 };
    const double length = sqrt(1.6 * 1.6 + 1.8 * 1.8), norms[] = { -5, -2, -5 },
                 cosines[] = { -(.6 * 1.6 + .8 * 1.8) / length, -1.8 / length, -1.6 / length };
    void *k = stored_from(be, keys, 6);
    float *score = space(be, 3);
    const struct kv_rows head = { k, NULL, 3 };

    be->key_norms(be, score, &head, 1, 2);
    expect(p, score, norms, 3, 0);
    be->key_cosines(be, score, &head, 1, 2);
    expect(p, score, cosines, 3, 1e-6);
    be->free(be, k);
    be->free(be, score);
}

Test(kernels, key_scores_by_hand)
{
    each_pair(check_keys_by_hand);
}

/* ---- scores changed in place -------------------------------------------- */

static float *pooled(struct backend *be, int rows, int n, int width)
{
    float *score = numbers(be, "score", (size_t)(rows * (n + 2)));

    be->avg_pool(be, score, rows, n, n + 2, width);
    return score;
}

static void check_pools(const struct pair *p)
{
    static const int n[] = { 1, 2, 6, 50, 1500 }, width[] = { 1, 5, 7, 31, 2047 };
    const struct tolerances within = { { 1e-6, 1e-6 }, { 1e-6, 1e-6 } };

    for (int i = 0; i < 5; i++)
        for (int w = 0; w < 5; w++)
            same_floats(p,
                        (struct results){ pooled(p->want, 3, n[i], width[w]), pooled(p->got, 3, n[i], width[w]),
                                          3 * ((size_t)n[i] + 2) },
                        within, "avg_pool");
    same_floats(p, (struct results){ pooled(p->want, 720, 1500, 3), pooled(p->got, 720, 1500, 3), 720 * 1502 }, within,
                "avg_pool of many rows");
}

Test(kernels, avg_pool)
{
    each_pair(check_pools);
}

static void check_pool_by_hand(const struct pair *p)
{
    struct backend *be = p->got;
    const float before[] = { 3, 6, 0, 15, 99 };
    const double after[] = { 3, 3, 7, 5, 99 }; // (0+3+6)/3, (3+6+0)/3, (6+0+15)/3, (0+15+0)/3
    float *score = numbers_from(be, before, 5);

    be->avg_pool(be, score, 1, 4, 5, 3);
    expect(p, score, after, 5, 0);
    be->free(be, score);
}

Test(kernels, avg_pool_by_hand)
{
    each_pair(check_pool_by_hand);
}

static void check_columns(const struct pair *p)
{
    static const int lengths[] = { 1, 7, 64, 1000, 4099, 4104 };
    const struct tolerances mean = { { 1e-6, 1e-6 }, { 1e-6, 1e-6 } };

    for (int i = 0; i < 6; i++) {
        enum { HEADS = 6 };
        size_t n = (size_t)lengths[i];
        const struct results of = { .n = HEADS * n };
        struct results r[4] = { of, of, of, of }; // scaled; means of 1, 3, 6 rows
        for (int side = 0; side < 2; side++) {
            struct backend *be = side ? p->got : p->want;
            for (int j = 0; j < 4; j++)
                *(side ? &r[j].got : &r[j].want) = numbers(be, "score", HEADS * n);
            float *factor = numbers(be, "factor", n);
            be->scale_columns(be, side ? r[0].got : r[0].want, HEADS, lengths[i], factor);
            for (int j = 1; j < 4; j++)
                be->mean_heads(be, side ? r[j].got : r[j].want, HEADS, lengths[i], j == 1 ? 1 : 3 * (j - 1));
            be->free(be, factor);
        }
        same_floats(p, r[0], EXACT, "scale_columns");
        same_floats(p, r[1], EXACT, "mean_heads of one");
        same_floats(p, r[2], mean, "mean_heads of three");
        same_floats(p, r[3], mean, "mean_heads of six");
    }
}

Test(kernels, scale_columns_and_mean_heads)
{
    each_pair(check_columns);
}

/* ---- selection ---------------------------------------------------------- */

enum { TOP_HEADS = 3 };

/* Scores of few different values, so that many are equal; a nan and a -0 among them. 0 values: all are different in
 * their lowest bits alone. On the host. */
static float *tied_scores(size_t n, int values)
{
    struct rng rng = rng_named(n, "tied");
    float *host = calloc(n + 1, sizeof(*host));

    for (size_t i = 0; i < n && values == 0; i++)
        host[i] = 1 + (float)rng_below(&rng, 4096) * 0x1p-23f;
    if (values == 0)
        return host;

    for (size_t i = 0; i < n; i++) {
        int v = (int)rng_below(&rng, (uint64_t)values);
        host[i] = v % 7 == 3 ? -0.0f : (float)(v - values / 2) / 8;
    }
    host[n / 2] = NAN;
    return host;
}

static int32_t *top_of(struct backend *be, int n, const int *k, int values)
{
    size_t n_scores = (size_t)(TOP_HEADS * n), n_kept = 0;
    float *host = tied_scores(n_scores, values), *score = numbers_from(be, host, n_scores);

    for (int h = 0; h < TOP_HEADS; h++)
        n_kept += (size_t)k[h];
    int32_t *kept = integer_space(be, n_kept);
    be->top_k(be, kept, score, TOP_HEADS, n, k);
    be->free(be, score);
    free(host);
    return kept;
}

static void check_top_k(const struct pair *p)
{
    static const int n[] = { 1, 2, 9, 100, 700 }, values[] = { 1, 3, 100000, 0 };

    for (int i = 0; i < 5; i++)
        for (int v = 0; v < 4; v++)
            for (int keep = 0; keep <= n[i]; keep += 1 + n[i] / 7) {
                const int even[] = { keep, keep, keep }, uneven[] = { keep, n[i] - keep, keep / 2 };
                same_integers(p,
                              (struct results){ top_of(p->want, n[i], even, values[v]),
                                                top_of(p->got, n[i], even, values[v]), (size_t)(TOP_HEADS * keep) },
                              "top_k");
                same_integers(p,
                              (struct results){ top_of(p->want, n[i], uneven, values[v]),
                                                top_of(p->got, n[i], uneven, values[v]), (size_t)(n[i] + keep / 2) },
                              "top_k, uneven");
            }
}

Test(kernels, top_k)
{
    each_pair(check_top_k);
}

/* More scores than a tile of the work has. */
static void check_long_top_k(const struct pair *p)
{
    static const int lengths[] = { 4099, 4104 };

    for (int i = 0; i < 2; i++) {
        const int n = lengths[i], k[] = { 1500, n - 7, 100 };
        for (int values = 0; values < 6; values += 3)
            same_integers(p,
                          (struct results){ top_of(p->want, n, k, values), top_of(p->got, n, k, values),
                                            (size_t)(k[0] + k[1] + k[2]) },
                          "top_k of long rows");
    }
}

Test(kernels, top_k_of_long_rows)
{
    each_pair(check_long_top_k);
}

static void expect_integers(const struct pair *p, const int32_t *device, const int32_t *want, size_t n,
                            const char *what)
{
    int32_t *got = read_integers(p->got, device, n, what);

    for (size_t i = 0; i < n; i++)
        cr_assert_eq(got[i], want[i], "%s: %s: %zu: %d, not %d", p->name, what, i, got[i], want[i]);
    free(got);
}

/* Of two rows of n scores the k[h] largest must be at `want`. */
static void keeps(const struct pair *p, const float *scores, int n, const int k[2], const int32_t *want)
{
    struct backend *be = p->got;
    const size_t n_kept = (size_t)(k[0] + k[1]);
    float *score = numbers_from(be, scores, (size_t)(2 * n));
    int32_t *kept = integer_space(be, n_kept);

    be->top_k(be, kept, score, 2, n, k);
    expect_integers(p, kept, want, n_kept, "top_k by hand");
    be->free(be, score);
    be->free(be, kept);
}

static void check_top_k_by_hand(const struct pair *p)
{
    const float scores[] = { 1, 5, 5, -2, 5, 0, -0.0f, 7, 1, 5, 5, -2, 5, 0, -0.0f, 7 };

    keeps(p, scores, 8, (int[]){ 3, 6 }, (int32_t[]){ 1, 2, 7, 0, 1, 2, 4, 5, 7 });
}

Test(kernels, top_k_prefers_the_lower_of_equals)
{
    each_pair(check_top_k_by_hand);
}

/* Norms of one token's keys at several positions, whose last bits are rounding; beyond them the larger is kept. */
static void check_top_k_of_alike(const struct pair *p)
{
    const float step = 0x1p-23f;
    const float scores[] = { 1, 1 + 4 * step, 9, 1 + step, 1 + 3 * step, 0, 1, 1 + 20 * step, 9, 1 + 9 * step, 1, 1 };

    keeps(p, scores, 6, (int[]){ 3, 3 }, (int32_t[]){ 0, 1, 2, 1, 2, 3 });
}

Test(kernels, top_k_prefers_the_lower_of_alike)
{
    each_pair(check_top_k_of_alike);
}

static void check_gather(const struct pair *p)
{
    enum { K = 2, SOURCE = 3 };
    struct backend *be = p->got;
    float numbers_k[MAX_HEADS * SOURCE * K], numbers_v[MAX_HEADS * SOURCE * K];
    const int32_t positions[] = { 0, 2, 1, 0, 1, 2 };
    const int n[] = { 2, 1, 0, 3 }, whole[] = { SOURCE, SOURCE, SOURCE, SOURCE };
    const float want[] = { 0, 1, 4, 5, 8, 9, 18, 19, 20, 21, 22, 23 };

    for (int i = 0; i < MAX_HEADS * SOURCE * K; i++) {
        numbers_k[i] = (float)i;
        numbers_v[i] = (float)-i;
    }
    void *k = stored_from(be, numbers_k, 4 * SOURCE * K), *v = stored_from(be, numbers_v, 4 * SOURCE * K);
    void *to_k = stored_space(be, 12), *to_v = stored_space(be, 12);
    int32_t *kept = integers_from(be, positions, 6);
    struct kv_rows src[4], dst[4];
    heads_of(be, src, (struct layout){ 4, K, whole }, k, v);
    heads_of(be, dst, (struct layout){ 4, K, n }, to_k, to_v);
    be->gather(be, dst, src, kept, 4, K);
    float *got_k = read_stored(be, to_k, 12, "gather k"), *got_v = read_stored(be, to_v, 12, "gather v");
    for (int i = 0; i < 12; i++)
        cr_assert(got_k[i] == want[i] && got_v[i] == -want[i], "%s %d: %g %g", p->name, i, (double)got_k[i],
                  (double)got_v[i]);
    void *all[] = { k, v, to_k, to_v, kept };
    for (int i = 0; i < 5; i++)
        be->free(be, all[i]);
    free(got_k);
    free(got_v);
}

Test(kernels, gather)
{
    each_pair(check_gather);
}

/* Whole heads of many rows: those that top_k keeps, as a ragged cache. */
static void check_ragged(const struct pair *p)
{
    enum { N = 300, K = 24, ROWS = 300 + 17 + 120 };
    static const int k[TOP_HEADS] = { 300, 17, 120 }, whole[TOP_HEADS] = { N, N, N };
    struct results r[2] = { { .n = ROWS * K }, { .n = ROWS * K } };

    for (int side = 0; side < 2; side++) {
        struct backend *be = side ? p->got : p->want;
        void *keys = stored(be, "k", TOP_HEADS * N * K), *values = stored(be, "v", TOP_HEADS * N * K);
        void *to_k = stored_space(be, ROWS * K), *to_v = stored_space(be, ROWS * K);
        int32_t *kept = top_of(be, N, k, 50);
        struct kv_rows src[TOP_HEADS], dst[TOP_HEADS];
        heads_of(be, src, (struct layout){ TOP_HEADS, K, whole }, keys, values);
        heads_of(be, dst, (struct layout){ TOP_HEADS, K, k }, to_k, to_v);
        be->gather(be, dst, src, kept, TOP_HEADS, K);
        *(side ? &r[0].got : &r[0].want) = to_k;
        *(side ? &r[1].got : &r[1].want) = to_v;
        be->free(be, keys);
        be->free(be, values);
        be->free(be, kept);
    }
    same_stored(p, r[0], EXACT, "ragged k");
    same_stored(p, r[1], EXACT, "ragged v");
}

Test(kernels, gather_of_ragged_heads)
{
    each_pair(check_ragged);
}

/* ---- budgets per head --------------------------------------------------- */

/* As kvpress does it (AdaKVPress): the floor largest of each row become the largest of all; then the lowest of all
 * rows are dropped, one after another, the last of equals first. */
static void count_naively(int32_t *count, const float *score, int n, int group, const struct joint_keep *keep)
{
    int total = group * n;
    float *s = calloc((size_t)total + 1, sizeof(*s));
    bool *gone = calloc((size_t)total + 1, sizeof(*gone));

    for (int i = 0; i < total; i++)
        s[i] = isnan(score[i]) ? 1e30f : score[i];
    for (int h = 0; h < group; h++) {
        count[h] = n;
        for (int f = 0; f < keep->floor; f++) {
            int top = -1;
            for (int t = 0; t < n; t++)
                if (s[h * n + t] < 1e35f && (top < 0 || s[h * n + t] > s[h * n + top]))
                    top = t;
            s[h * n + top] = 1e35f;
        }
    }
    for (int drop = total - keep->n_keep; drop > 0; drop--) {
        int low = -1;
        for (int i = 0; i < total; i++)
            if (!gone[i] && (low < 0 || s[i] <= s[low]))
                low = i;
        gone[low] = true;
        count[low / n]--;
    }
    free(s);
    free(gone);
}

/* Groups of `group` rows; the second and later ones keep about half of what the first keeps. */
static void check_joint_case(const struct pair *p, int group, const struct joint_keep *first, int n, int values)
{
    struct backend *be = p->got;
    int n_heads = group == 8 ? 8 : 3 * group;
    struct joint_keep less = { (first->n_keep + 1) / 2, first->floor / 2 }, keep[] = { *first, less, less };
    size_t n_scores = (size_t)(n_heads * n);
    float *host = tied_scores(n_scores, values), *score = numbers_from(be, host, n_scores);
    int32_t *count = integer_space(be, (size_t)n_heads), want[9];

    be->joint_counts(be, count, score, n_heads, n, group, keep);
    for (int i = 0; i < n_heads / group; i++)
        count_naively(want + i * group, host + i * group * n, n, group, &keep[i]);
    expect_integers(p, count, want, (size_t)n_heads, "joint_counts");
    be->free(be, count);
    be->free(be, score);
    free(host);
}

static void check_joint_counts(const struct pair *p)
{
    static const int lengths[] = { 1, 2, 9, 40, 151 }, values[] = { 1, 3, 20, 100000 }, groups[] = { 1, 2, 3, 8 };

    for (int i = 0; i < 5; i++)
        for (int v = 0; v < 4; v++)
            for (int g = 0; g < 4; g++)
                for (int part = 0; part <= 4; part++) {
                    int n = lengths[i], group = groups[g], n_keep = group * n * part / 4;
                    int floor = n_keep / group * (v + 1) / 5;
                    check_joint_case(p, group, &(struct joint_keep){ n_keep, floor }, n, values[v]);
                    check_joint_case(p, group, &(struct joint_keep){ n_keep, 0 }, n, values[v]);
                    check_joint_case(p, group, &(struct joint_keep){ n_keep, n_keep / group }, n, values[v]);
                }
}

Test(kernels, joint_counts)
{
    each_pair(check_joint_counts);
}

/* n_heads rows of n numbers, in groups of `group` rows. */
struct joint_rows {
    int n_heads, group, n;
};

static int32_t *joint_counts_of(struct backend *be, struct joint_rows rows, int values, const struct joint_keep *keep)
{
    size_t n_scores = (size_t)(rows.n_heads * rows.n);
    float *host = tied_scores(n_scores, values), *score = numbers_from(be, host, n_scores);
    int32_t *count = integer_space(be, (size_t)rows.n_heads);

    be->joint_counts(be, count, score, rows.n_heads, rows.n, rows.group, keep);
    must_sync(be);
    be->free(be, score);
    free(host);
    return count;
}

static void same_joint_counts(const struct pair *p, struct joint_rows rows, int values, const struct joint_keep *keep)
{
    same_integers(p,
                  (struct results){ joint_counts_of(p->want, rows, values, keep),
                                    joint_counts_of(p->got, rows, values, keep), (size_t)rows.n_heads },
                  "joint_counts");
}

/* More scores than a tile of the work has, against the reference. */
static void check_long_joint_counts(const struct pair *p)
{
    static const int lengths[] = { 4099, 4104 }, values[] = { 3, 100000, 0 };

    for (int i = 0; i < 2; i++)
        for (int v = 0; v < 3; v++)
            for (int f = 0; f < 3; f++)
                same_joint_counts(p, (struct joint_rows){ 4, 2, lengths[i] }, values[v],
                                  (struct joint_keep[]){ { lengths[i], f * 700 }, { lengths[i] / 2, 0 } });
}

Test(kernels, joint_counts_of_long_rows)
{
    each_pair(check_long_joint_counts);
}

/* All heads of all layers: 80 layers of 65 heads. */
static void check_many_joint_counts(const struct pair *p)
{
    static const struct joint_rows all = { 80 * 65, 80 * 65, 3 };

    for (int values = 3; values < 100; values += 96)
        for (int part = 0; part <= 4; part++)
            same_joint_counts(p, all, values, &(struct joint_keep){ all.group * all.n / 4 * part, 0 });
    same_joint_counts(p, all, 20, &(struct joint_keep){ all.group * 2, 1 });
}

Test(kernels, joint_counts_of_many_rows)
{
    each_pair(check_many_joint_counts);
}

/* Two heads of four: without a floor the six largest are 4 and 2; a floor of three takes as many of each. */
static void check_joint_by_hand(const struct pair *p)
{
    struct backend *be = p->got;
    const float scores[] = { 9, 8, 7, 6, 5, 5, 5, 1 };
    float *score = numbers_from(be, scores, 8);
    int32_t *count = integer_space(be, 2);

    be->joint_counts(be, count, score, 2, 4, 2, &(struct joint_keep){ 6, 0 });
    expect_integers(p, count, (int32_t[]){ 4, 2 }, 2, "joint_counts");
    be->joint_counts(be, count, score, 2, 4, 2, &(struct joint_keep){ 6, 3 });
    expect_integers(p, count, (int32_t[]){ 3, 3 }, 2, "joint_counts");
    be->joint_counts(be, count, score, 2, 4, 2, &(struct joint_keep){ 3, 1 });
    expect_integers(p, count, (int32_t[]){ 2, 1 }, 2, "joint_counts");
    be->joint_counts(be, count, score, 2, 4, 1, (struct joint_keep[]){ { 2, 1 }, { 3, 1 } });
    expect_integers(p, count, (int32_t[]){ 2, 3 }, 2, "joint_counts");
    be->free(be, score);
    be->free(be, count);
}

Test(kernels, joint_counts_by_hand)
{
    each_pair(check_joint_by_hand);
}

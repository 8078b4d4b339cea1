/* expected_attention and criticalkv on a small cache, against their definitions. */
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* x (K) turned by the mean of the rotations by n positions from T on, as a matrix. */
static void turn(const struct cache *c, int n, const double *x, double *out)
{
    enum { HALF = ROTARY / 2 };

    memcpy(out, x, K * sizeof(*x));
    for (int i = 0; i < HALF; i++) {
        double cos = 0, sin = 0;
        for (int p = 0; p < n; p++) {
            cos += (double)c->cos[(c->full.n_tokens + p) * HALF + i] / n;
            sin += (double)c->sin[(c->full.n_tokens + p) * HALF + i] / n;
        }
        out[i] = cos * x[i] - sin * x[i + HALF];
        out[i + HALF] = sin * x[i] + cos * x[i + HALF];
    }
}

/* The log of the mean of e^(q . k / sqrt(K)), if the turned queries q of one head are normally distributed: the mean of
 * q . k / sqrt(K) plus half its variance, from the queries one by one. */
static double log_mean(const struct cache *c, int layer, int head, int t, int n)
{
    int T = c->full.n_tokens;
    const float *key = c->k[layer * G + head / (H / G)] + (size_t)t * K;
    double sum = 0, squares = 0;

    for (int i = 4; i < T; i++) {
        double q[K], turned[K], dot = 0;
        for (int j = 0; j < K; j++)
            q[j] = (double)c->q[layer][((size_t)i * H + (size_t)head) * K + (size_t)j];
        turn(c, n, q, turned);
        for (int j = 0; j < K; j++)
            dot += turned[j] * (double)key[j] / sqrt(K);
        sum += dot;
        squares += dot * dot;
    }
    double mean = sum / (T - 4);
    return mean + (squares / (T - 4) - mean * mean) / 2;
}

/* The scores of expected_attention; epsilon below 0: without the norm of the value. */
static void expect_attention(const struct cache *c, double *score, int n, double epsilon)
{
    int T = c->full.n_tokens, group = H / G;

    for (int h = 0; h < L * G; h++) {
        double *s = score + h * T;
        for (int t = 0; t < T; t++)
            s[t] = 0;
        for (int j = 0; j < group; j++) {
            double z[64], sum = 0;
            for (int t = 4; t < T; t++)
                sum += z[t] = exp(log_mean(c, h / G, h % G * group + j, t, n));
            for (int t = 4; t < T; t++)
                s[t] += z[t] / sum / group;
        }
        for (int t = 0; t < T; t++) {
            double norm = 0;
            for (int j = 0; j < K; j++)
                norm += pow((double)c->v[h][t * K + j], 2);
            s[t] = t < 4 ? 1e6 : epsilon < 0 ? s[t] : (s[t] + epsilon) * sqrt(norm);
        }
    }
}

Test(variants, expected_attention_is_that_of_queries_like_the_contexts)
{
    enum { T = 45 };
    double norms[L * G * T], attention[L * G * T];
    struct cache c;

    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        expect_attention(&c, norms, 40, 0.01);
        expect_attention(&c, attention, 3, -1);
        expect_best(&c, "expected_attention:drop=0.6:n_future=40:epsilon=0.01", norms, 1, 0);
        expect_best(&c, "expected_attention:drop=0.3:n_future=3:use_vnorm=no", attention, 1, 0);
        cache_release(&c);
    }
}

/* With as few tokens as are always kept there is nothing to expect: the first stay. */
Test(variants, expected_attention_of_a_few_tokens)
{
    struct config config = config_of("expected_attention:drop=0.5:n_future=5");

    for (int T = 2; T <= 5; T++) {
        struct cache c;
        cache_init(&c, T);
        struct made m = made_of(&c, &config);
        for (int i = 0; i < L * G * (T / 2); i++)
            cr_assert_eq(m.v.kept[i], i % (T / 2), "%d tokens", T);
        made_release(&m);
        cache_release(&c);
    }
}

/* First the best by the scores alone, then by the scores times the norms. */
Test(variants, criticalkv_chooses_in_two_stages)
{
    enum { T = 61, FIRST = 9, KEPT = 18 }; // (int)(61 * (1 - 0.7)) kept
    double score[L * G * T];
    struct cache c;

    for (int b = 0; b < BACKENDS; b++) {
        if (!cache_open(&c, backends[b][0], backends[b][1], T))
            continue;
        for (int h = 0; h < L * G; h++)
            for (int t = 0; t < T; t++) {
                int better = 0;
                double mine = (double)c.column_sums[h * T + t] / (T - t);
                for (int u = 0; u < T; u++)
                    better += (double)c.column_sums[h * T + u] / (T - u) > mine;
                score[h * T + t] =
                    better < FIRST ? 1e6 : (mine / (H / (double)G) + 0.25) * (double)c.value_norms[h * T + t];
            }
        expect_best(&c, "criticalkv:epsilon=0.25+h2o:drop=0.7", score, 1, 0);
        cache_release(&c);
    }
}

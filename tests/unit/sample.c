/* Tokens drawn by their probability: against softmax, and at the ends. */
#include "engine/transformer/sample.h"

#include "base/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { V = 12 };
static const float logits[V] = { 1.5f, -2, 0, 3, 2.75f, -9, 0.5f, 2, 1, -1, 3, -30 };

/* What softmax gives each token. */
static void softmax(double p[V], double temperature)
{
    double sum = 0;

    for (int i = 0; i < V; i++)
        sum += p[i] = exp((double)logits[i] / temperature);
    for (int i = 0; i < V; i++)
        p[i] /= sum;
}

static int32_t draw(double temperature, double unit)
{
    float logit[V];

    memcpy(logit, logits, sizeof(logit));
    return sample_token(logit, V, temperature, unit);
}

/* Pearson's statistic of n draws; tokens that are expected less than five times count together. */
static double chi_square(const int count[V], const double p[V], int n, int *bins)
{
    double sum = 0, rare = 0, rare_seen = 0;

    *bins = 0;
    for (int i = 0; i < V; i++) {
        double expected = n * p[i];
        if (expected < 5) {
            rare += expected;
            rare_seen += count[i];
            continue;
        }
        sum += (count[i] - expected) * (count[i] - expected) / expected;
        (*bins)++;
    }
    if (rare >= 5) {
        sum += (rare_seen - rare) * (rare_seen - rare) / rare;
        (*bins)++;
    }
    return sum;
}

Test(sample, tokens_are_drawn_as_softmax_says)
{
    enum { N = 200000 };
    static const double temperatures[] = { 0.3, 0.7, 1, 3 };

    for (size_t t = 0; t < sizeof(temperatures) / sizeof(*temperatures); t++) {
        struct rng rng = rng_new(11 + t);
        int count[V] = { 0 }, bins;
        double p[V];
        for (int i = 0; i < N; i++)
            count[draw(temperatures[t], rng_unit(&rng))]++;
        softmax(p, temperatures[t]);
        double chi = chi_square(count, p, N, &bins);
        // at most 11 degrees of freedom: 31.3 is exceeded by chance once in 1,000 times
        cr_assert_lt(chi, 31.3, "temperature %g: %g over %d bins", temperatures[t], chi, bins);
        cr_assert_geq(bins, 4);
    }
}

Test(sample, each_token_has_its_part_of_the_unit_interval)
{
    double p[V], below = 0;

    softmax(p, 0.7);
    for (int i = 0; i < V; i++) {
        if (p[i] > 1e-5) {
            cr_assert_eq(draw(0.7, below + 1e-3 * p[i]), i);
            cr_assert_eq(draw(0.7, below + 0.999 * p[i]), i);
        }
        below += p[i];
    }
    cr_assert_eq(draw(0.7, 0), 0);
    cr_assert_geq(draw(0.7, 1 - 0x1p-53), 0);
}

Test(sample, a_low_temperature_takes_the_best_and_a_high_one_any)
{
    struct rng rng = rng_new(5);
    int seen = 0;

    for (int i = 0; i < 100; i++) {
        int32_t id = draw(1e-6, rng_unit(&rng));
        cr_assert(id == 3 || id == 10, "one of the two largest, not %d", id);
        seen |= 1 << draw(1e6, rng_unit(&rng));
    }
    cr_assert_eq(seen, (1 << V) - 1);
}

Test(sample, logits_that_are_not_finite_give_none)
{
    static const float wrong[] = { NAN, INFINITY, -INFINITY };

    for (int i = 0; i < 3; i++) {
        float logit[] = { 1, 2, wrong[i] };
        cr_assert_eq(sample_token(logit, 3, 1, 0.5), -1);
    }
}

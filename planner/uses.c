/* uses.c - counts decay when they are looked at. The scales are powers of 4 apart, so one exponential gives all. */
#include "planner/uses.h"

#include <math.h>

/* The shortest scale must be below the life of a session, in uses. Weights follow the last LEARN uses, the first ones
 * faster. */
enum { SHORTEST = 128, LONGEST = SHORTEST << 2 * (USES_SCALES - 1), LEARN = 300, LEARN_FIRST = 100 };

/* What a count of each scale has become after some uses. */
static void decay(double uses, double *factor)
{
    factor[USES_SCALES - 1] = exp(-uses / LONGEST);
    for (int j = USES_SCALES - 1; j > 0; j--) {
        double square = factor[j] * factor[j];
        factor[j - 1] = square * square;
    }
}

/* Each scale's part of the chance. */
static double parts(const struct uses *u, const struct use_counts *c, double *part)
{
    double factor[USES_SCALES], chance = 0;

    decay(u->age - c->at, factor);
    for (int j = 0; j < USES_SCALES; j++) {
        part[j] = u->weight[j] * c->n[j] * factor[j] / (u->sum[j] + 1);
        chance += part[j];
    }
    return chance;
}

void uses_begin(struct uses *u)
{
    *u = (struct uses){ 0 };
    for (int j = 0; j < USES_SCALES; j++)
        u->weight[j] = 1. / USES_SCALES;
}

void uses_restore(struct uses *u, double n, const double weight[USES_SCALES])
{
    double all = 0;

    for (int j = 0; j < USES_SCALES; j++)
        all += weight[j];
    for (int j = 0; j < USES_SCALES && all > 0; j++)
        u->weight[j] = weight[j] / all;
    u->learned = n;
}

double uses_chance(const struct uses *u, const struct use_counts *c)
{
    double part[USES_SCALES];

    return parts(u, c, part);
}

void uses_get(const struct uses *u, const struct use_counts *c, double n[USES_SCALES])
{
    double factor[USES_SCALES];

    decay(u->age - c->at, factor);
    for (int j = 0; j < USES_SCALES; j++)
        n[j] = c->n[j] * factor[j];
}

void uses_count(struct uses *u, struct use_counts *c)
{
    double part[USES_SCALES], one[USES_SCALES], chance = parts(u, c, part);
    double step = fmax(1. / LEARN, 1 / (LEARN_FIRST + u->learned));

    for (int j = 0; j < USES_SCALES && chance > 0; j++)
        u->weight[j] += (part[j] / chance - u->weight[j]) * step;
    u->age++;
    u->learned++;
    uses_get(u, c, c->n);
    c->at = u->age;
    decay(1, one);
    for (int j = 0; j < USES_SCALES; j++) {
        u->sum[j] = u->sum[j] * one[j] + 1;
        c->n[j]++;
    }
}

void uses_forget(struct uses *u, struct use_counts *c)
{
    double n[USES_SCALES];

    uses_get(u, c, n);
    for (int j = 0; j < USES_SCALES; j++)
        u->sum[j] = fmax(u->sum[j] - n[j], 0);
    *c = (struct use_counts){ .at = u->age };
}

void uses_put(struct uses *u, struct use_counts *c, const double n[USES_SCALES])
{
    uses_forget(u, c);
    for (int j = 0; j < USES_SCALES; j++) {
        c->n[j] = n[j];
        u->sum[j] += n[j];
    }
}

void uses_set(struct uses *u, struct use_counts *c, double uses, double all)
{
    double n[USES_SCALES];

    decay(all, n);
    for (int j = 0; j < USES_SCALES; j++)
        n[j] = uses * (1 - n[j]) * (SHORTEST << 2 * j) / all;
    uses_put(u, c, n);
}

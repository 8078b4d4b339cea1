/* random - keeps pairs by chance: a control for the other methods. What loses less quality than this at the same drop
 * knows something about the context.
 *
 *     score[h][t] = the t-th draw of head h of layer l, uniform in [0, 1)
 * from a stream of the seed with the name "layer.head" (SplitMix64, base/rng.h): the same on every machine and backend,
 * and for every context of the same length. Each head draws by itself.
 *
 * Source: the control of kvpress, RandomPress, whose numbers are torch's; with a seed it draws the same for all layers.
 */
#include "methods/registry.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>

enum { DROP, SEED };

static void draw_head(float *score, int n, uint64_t seed, const int head[2])
{
    char name[32];

    snprintf(name, sizeof(name), "%d.%d", head[0], head[1]);
    struct rng rng = rng_named(seed, name);
    for (int t = 0; t < n; t++)
        score[t] = (float)rng_unit(&rng);
}

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    int T = full->n_tokens, G = full->shape.n_kv_heads, n_heads = full->shape.n_layers * G;
    size_t bytes = (size_t)n_heads * (size_t)T * sizeof(float);
    float *host = malloc(bytes); // (L * G, T)

    if (!host)
        return err_nomem(err);
    for (int h = 0; h < n_heads; h++)
        draw_head(host + (size_t)h * (size_t)T, T, (uint64_t)value[SEED], (int[2]){ h / G, h % G });
    full->backend->write(full->backend, out, host, bytes);
    free(host);
    return 0;
}

const struct method method_random = {
    .name = "random",
    .summary = "keeps pairs by chance, as a control",
    .source = "kvpress RandomPress",
    .param = { PARAM_DROP,
               { .name = "seed",
                 .min = 0,
                 .max = 1e9,
                 .otherwise = 0,
                 .whole = true,
                 .help = "of the random numbers" } },
    .drop = &(const struct method_drop){ .scores = { .all = score } },
};

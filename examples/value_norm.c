/* value_norm.c - a compression method of one's own: keeps the tokens with the largest values, and the first `sink`
 * tokens.
 *
 *     cc -shared -fPIC -O2 value_norm.c -o libvalue_norm.so -lm
 *     evp-profile ... --plugin ./libvalue_norm.so --configs value_norm:drop=0.5,adakv+value_norm:drop=0.5:sink=8
 */
#include <evp_method.h>

#include <math.h>
#include <stddef.h>
#include <stdio.h>

enum { DROP, SINK }; /* value[0] is always drop */

static int score(const struct evp_head *head, const double *value, float *score, char why[EVP_METHOD_WHY])
{
    int K = head->head_dim;

    for (int t = 0; t < head->n_tokens; t++) {
        const float *v = head->v + (size_t)t * (size_t)K;
        double squares = 0;
        for (int c = 0; c < K; c++)
            squares += (double)v[c] * v[c];
        if (!isfinite(squares)) {
            snprintf(why, EVP_METHOD_WHY, "value %d is not finite", t);
            return 1;
        }
        score[t] = t < value[SINK] ? INFINITY : (float)sqrt(squares);
    }
    return 0;
}

static const struct evp_param params[] = {
    { .name = "sink", .help = "tokens always kept at the start", .min = 0, .max = 1024, .otherwise = 4, .whole = 1 },
    { .name = NULL },
};

extern const struct evp_method evp_method;
const struct evp_method evp_method = {
    .abi = EVP_METHOD_ABI,
    .size = sizeof(struct evp_method),
    .name = "value_norm",
    .summary = "keeps tokens with large values",
    .source = "an example of EvicPress",
    .param = params,
    .score = score,
};

/* evp_method.h - a dropping method of your own, as a shared object for --plugin of evp-profile and the other tools.
 *
 * The object exports one struct evp_method named evp_method. Its score() gets copies of one kv head at a time in
 * float32, so it works with every backend and model. It is called by several threads at once, for different heads of a
 * layer. Nothing that it gets may be changed or kept. Examples: examples/value_norm.c, and
 * contrib/python/examples/method.py in Python.
 *
 * Letters: T tokens, K head_dim, W window. Arrays are row-major.
 */
#ifndef EVP_METHOD_PLUGIN_H
#define EVP_METHOD_PLUGIN_H

#include <stdint.h>

#define EVP_METHOD_ABI 1

enum { EVP_METHOD_WHY = 256 }; // bytes of a failure's text, its NUL included

/* One kv head of the uncompressed cache of one context. Later versions add members at the end. */
struct evp_head {
    int32_t layer, head;          // from 0; layer: of those that keep every token; head: of the layer's kv heads
    int32_t n_layers, n_kv_heads; // these layers; layers with a window are not compressed
    int32_t n_group, head_dim;    // query heads that share this head; K
    int32_t n_tokens;             // T, the chat template's tokens before the text included
    int32_t window;               // W: at most what the method asked for, and at most T
    const float *k, *v;           // (T, K): keys with their rotary embedding, values
    const float *window_q;        // (W, n_group, K): rotated queries of the last W tokens; NULL: not asked for
    const float *column_sums;     // (T): attention that each key got from all tokens and query heads of the group;
                                  // NULL: not asked for
    float cap; // > 0: scores q . k / sqrt(K) become cap * tanh(score / cap) before the model's softmax
};

/* A parameter besides drop, as in name:drop=0.5:mine=3. */
struct evp_param {
    const char *name, *help;    // lower case letters, digits, _
    double min, max, otherwise; // bounds, inclusive; the default
    int32_t whole;              // 1: only whole numbers
    int32_t budget;             // 1: changes what keep() says, not the scores
};

struct evp_method {
    uint32_t abi, size;            // EVP_METHOD_ABI, sizeof(struct evp_method)
    const char *name, *summary;    // name: lower case letters, digits, _; not one that exists
    const char *source;            // the paper or code that it follows; or NULL
    const struct evp_param *param; // at most 7, the last with name NULL; or NULL
    int32_t window, column_sums;   // queries of so many last tokens, and column sums (1), are needed; 0: not

    /* score (T): the highest are kept; all nan before, none after. value[0] is drop, value[1] .. are the parameters;
     * score must not depend on drop, or on parameters with `budget`. Returns 0, or another number and a text in why. */
    int (*score)(const struct evp_head *head, const double *value, float *score, char why[EVP_METHOD_WHY]);

    /* How many pairs each head of a layer keeps, 1 .. n_tokens; NULL: (int)(n_tokens * (1 - drop)), at least 1. */
    int32_t (*keep)(const double *value, int32_t n_tokens, int32_t layer, int32_t n_layers);
};

#endif

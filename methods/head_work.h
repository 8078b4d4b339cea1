/* head_work.h - methods that compute on the host: they see copies of one kv head in f32, so the same code serves every
 * backend and gives the same numbers on all that hold the same cache.
 */
#ifndef EVP_HEAD_WORK_H
#define EVP_HEAD_WORK_H

#include "methods/method.h"

/* One kv head of the full cache, in host memory. */
struct host_head {
    int layer, head;          // head: of the layer's G
    int n_layers, n_kv_heads; // L, G
    int n_group, head_dim;    // H/G query heads share this head; K
    int n_tokens, n_head;     // T; of these, tokens of the chat template before the text
    int window;               // W, or 0
    const float *k, *v;       // (T, K), keys with their rotation
    const float *window_q;    // (W, H/G, K): queries of the last W tokens; NULL unless the method needs them
    const float *column_sums; // (T): attention of all tokens and H/G heads; NULL unless the method needs it
};

/* What is done with each head. Heads of a layer are given to several threads. */
struct host_work {
    unsigned needs; // enum method_need: what the heads must have
    int (*head)(const struct host_head *head, void *arg, struct err *err);
    void *arg;
};

/* Does the work for all heads, layer by layer. Returns the first failure. */
int host_each_head(const struct kv_full *full, const struct host_work *work, struct err *err) MUST_CHECK;

/* Computes the scores of a method with score_head(): out (L * G, T) on the device. ERR_FAIL: a score is not a number. */
int host_score(const struct kv_full *full, const struct config_stage *stage, float *out, struct err *err) MUST_CHECK;

#endif

/* head_work.h - methods that compute on the host: they see copies of one kv head in f32, so the same code serves every
 * backend and gives the same numbers on all that hold the same cache.
 */
#ifndef EVP_HEAD_WORK_H
#define EVP_HEAD_WORK_H

#include "methods/evp_method.h"
#include "methods/method.h"

/* Reads n numbers, of the backend's dtype, as f32. */
int read_as_f32(struct backend *be, float *to, const void *at, size_t n, struct err *err) MUST_CHECK;

/* Writes n numbers in the backend's dtype. narrow: room for n numbers. */
void write_from_f32(struct backend *be, void *at, const float *from, size_t n, uint16_t *narrow);

/* What a head keeps of its tokens. */
struct host_kept {
    const int32_t *at; // (n): ascending positions
    int n;
    const float *score; // (T): of all tokens, from the merging method's own score(), or NULL
};

/* What is done with each head. Heads of a layer are given to several threads. */
struct host_work {
    unsigned needs; // enum method_need: what the heads must have
    int (*head)(const struct evp_head *head, void *arg, struct err *err);
    int (*layer)(int layer, void *arg, struct err *err); // after the heads of a layer, by one thread; or NULL
    void *arg;
};

/* Does the work for all heads, layer by layer. Returns the first failure. */
int host_each_head(const struct kv_full *full, const struct host_work *work, struct err *err) MUST_CHECK;

/* Computes the scores of a dropping method with scores.head(): out (L * G, T) on the device. ERR_FAIL: a score is not a
 * number. */
int host_score(const struct kv_full *full, const struct method *method, const double *value, float *out,
               struct err *err) MUST_CHECK;

#endif

/* kvzap.h - the coefficients by which kvzap predicts the scores of kvzip from keys and values, fitted once to a model.
 * Their file is of safetensors:
 *
 *     weight         F32 [L, G, 2 * G * K + 1], for each kv head of each layer that keeps every token: of the keys of
 *                    all heads before their rotation, then of the values, then the constant
 *     __metadata__   evp "kvzap", version "1", model_digest
 */
#ifndef EVP_KVZAP_H
#define EVP_KVZAP_H

#include "base/digest.h"
#include "base/safetensors.h"
#include "methods/method.h"

#define KVZAP_VERSION "1"

struct kvzap {
    char model_digest[DIGEST_HEX];
    int n_layers, n_kv_heads, head_dim;
    float *weight; // (L, G, 2 * G * K + 1)
};

/* Reads a file's bytes. ERR_FORMAT says what is wrong with them. */
int kvzap_parse(struct kvzap *z, const void *bytes, size_t n, struct err *err) MUST_CHECK;
void kvzap_release(struct kvzap *z); // zeroed is fine

/* Takes the file by which kvzap scores, for the life of the process; once. NULL: none. */
int kvzap_use(const char *path, struct err *err) MUST_CHECK;

/* ERR_FORMAT: a file was taken that is of another model; or, for a config of kvzap, of another shape. ERR_USAGE: such a
 * config has no file. */
int kvzap_check(const char *model_digest, struct err *err) MUST_CHECK;
int kvzap_check_config(const struct config *config, const struct kv_shape *shape, struct err *err) MUST_CHECK;

/* ---- fitting (kvzap_fit.c) ---- */

struct kvzap_fit;
struct kvzap_fit *kvzap_fit_new(const struct kv_shape *shape, struct err *err);
void kvzap_fit_free(struct kvzap_fit *f); // NULL is fine

/* Adds a context with repeat_max. */
int kvzap_fit_add(struct kvzap_fit *f, const struct kv_full *full, struct err *err) MUST_CHECK;

/* Writes the coefficients of least squares over all contexts added. ERR_FAIL: there was none. */
int kvzap_fit_write(struct kvzap_fit *f, const char *path, const char *model_digest, struct err *err) MUST_CHECK;

/* ---- for both ---- */

/* Called for each layer in turn with x (T, 2 * G * K + 1): of each token the keys of all heads before their rotation,
 * the values, and 1. */
struct kvzap_work {
    int (*layer)(int layer, const float *x, void *arg, struct err *err);
    void *arg;
};
int kvzap_each_layer(const struct kv_full *full, const struct kvzap_work *work, struct err *err) MUST_CHECK;

/* The first tokens, which are always kept. */
static inline int kvzap_sink(const struct kv_full *full)
{
    int n = full->n_head > 4 ? full->n_head : 4;

    return n < full->n_tokens ? n : full->n_tokens;
}

#endif

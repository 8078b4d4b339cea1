/* kvzap.h - the coefficients by which kvzap predicts kvzip's scores, fitted once to a model; a safetensors file:
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

/* Takes the file by which kvzap scores, for the life of the process; once. */
int kvzap_use(const char *path, struct err *err) MUST_CHECK;

/* ERR_FORMAT: the file is of another model; for a config of kvzap, of another shape. ERR_USAGE: it has no file. */
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

/* Calls for each layer in turn, and all i from 0 to n - 1 on several threads, with x (T, 2 * G * K + 1): of each token
 * the keys of all heads before their rotation, the values, and 1. */
struct kvzap_work {
    void (*call)(void *arg, int layer, const float *x, int i);
    void *arg;
    int n;
};
int kvzap_each_layer(const struct kv_full *full, const struct kvzap_work *work, struct err *err) MUST_CHECK;

#endif

/* cache.h - a small KV cache full of noise on a backend, for tests that make variants of one. Tests see its numbers,
 * and those of variants, in host memory.
 */
#ifndef EVP_CACHE_H
#define EVP_CACHE_H

#include "kernels/pool.h"
#include "methods/method.h"
#include "variants/sizes.h"
#include "variants/variant.h"

enum { L = 2, H = 6, G = 2, K = 32, W = 16, HEAD = 9 }; // W: queries saved; HEAD: tokens of the chat template
enum { ROTARY = 24, FUTURE = 40 };                      // FUTURE: angles after T

/* The backends that compute methods, with the dtype of their cache. */
enum { BACKENDS = 6 };
extern const char *const backends[BACKENDS][2];

struct cache {
    struct backend *be;
    struct pool pool;
    struct kv_full full;
    struct kv_rows rows[L * G];
    void *window_q[L];
    float *k[L * G], *v[L * G]; // (T, K), as the device has them
    float *q[L];                // (T, H, K): queries of all tokens
    float *column_sums;         // (L * G, T)
    float *repeat_max;          // (L * G, T): noise from 0 to 1
    float *moments;             // (L * H, K + 1, K), of these queries
    float *cos, *sin;           // (T + FUTURE, ROTARY / 2)
    float *value_norms;         // (L * G, T)
};

/* The same numbers every time, keys and values as payloads hold them; of the reference backend in f32, or of another,
 * also "fenced". false: this machine lacks it, and nothing is left to release. cache_write: puts the numbers, changed
 * by a test, on the device. */
void cache_init(struct cache *c, int n_tokens);
bool cache_open(struct cache *c, const char *backend, const char *dtype, int n_tokens);
void cache_write(struct cache *c);
void cache_release(struct cache *c);

/* exp(q . k_t / sqrt(K)) over its sum, of token i's query head to the keys it sees: (T), 0 beyond i. Free it. */
double *attention_of(const struct cache *c, int layer, int i, int head);

/* A variant with all a payload needs, and its rows in host memory. */
struct made {
    struct variant v;
    float *k[L * G], *rows_v[L * G]; // (n, K)
};

/* These assert that it works. made_all: n variants from one compressor. */
struct config config_of(const char *text);
struct made made_of(struct cache *c, const struct config *config);
void made_all(struct cache *c, const struct config *configs, int n, struct made *out);
void made_release(struct made *m);

/* Asserts that every head keeps what of all scores (L * G, T) is largest among `group` heads together, with `floor` of
 * each for sure. Two scores may not be nearer than rounding. */
void expect_best(const struct cache *c, const char *text, const double *score, int group, int floor);

#endif

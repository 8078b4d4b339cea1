/* cache.h - a small KV cache full of noise, for tests that make variants of one. */
#ifndef EVP_CACHE_H
#define EVP_CACHE_H

#include "methods/method.h"

enum { L = 2, H = 6, G = 2, K = 32, W = 16 }; // W: queries saved

struct cache {
    struct backend *be;
    struct kv_full full;
    struct kv_rows rows[L * G];
    void *window_q[L];
    struct compressor *c;
};

void cache_init(struct cache *c, int n_tokens); // the same numbers every time
void cache_release(struct cache *c);

/* These assert that it works. */
struct config config_of(const char *text);
struct variant variant_of(struct cache *c, const struct config *config); // with all a payload needs

/* Row i of a matrix of K columns. */
const float *row(const void *matrix, int i);

#endif

/* kv.h - the one layout of keys and values in memory.
 *
 * A KV cache has, per layer and kv head, two matrices of n rows and K (head_dim) columns, rows contiguous. In
 * compressed caches n differs from head to head. Keys are stored after rotary embedding at their position in the
 * context, so attention needs no index of the kept rows. The next token's position is the context's original length;
 * every compressed cache records it.
 *
 * Letters: T tokens, L layers, H query heads, G kv heads, K head dim.
 */
#ifndef EVP_KV_H
#define EVP_KV_H

#include <stddef.h>
#include <stdint.h>

enum dtype { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I32, DTYPE_U8 };

static inline size_t dtype_size(enum dtype t)
{
    return t == DTYPE_F32 || t == DTYPE_I32 ? 4 : t == DTYPE_U8 ? 1 : 2;
}

/* "f32", "bf16", ... */
static inline const char *dtype_name(enum dtype t)
{
    static const char *const name[] = { "f32", "f16", "bf16", "i32", "u8" };
    return name[t];
}

/* KV pairs of one layer and one kv head. k and v are addresses on the backend's device. */
struct kv_rows {
    void *k, *v; // (n, K) each, of the backend's dtype
    int n;
};

/* Uncompressed KV pairs of many tokens, all layers and heads: layer l, head g, slot s is row (l * G + g) * head_rows +
 * s. */
struct kv_store {
    void *k, *v; // of the backend's dtype
    size_t head_rows;
};

/* The shape of every cache of a model. */
struct kv_shape {
    int n_layers, n_heads, n_kv_heads, head_dim; // L, H, G, K; n_heads is a multiple of n_kv_heads
    enum dtype dtype;                            // of k and v on the device
};

#endif

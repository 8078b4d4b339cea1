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
#include <string.h>

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

enum { KV_LAYERS_MAX = 1024 };

/* The shape of every cache of a model. A cache has the layers that keep every token first, in the model's order; these
 * are the layers that methods see and change. Behind them it has those with a window, of which every variant keeps the
 * last `window` tokens, or all of fewer, as they are: one more than the next token attends to, as engines count. */
struct kv_shape {
    int n_layers;                          // L: those that keep every token
    int n_heads, n_kv_heads, head_dim;     // H, a multiple of G; G, K
    enum dtype dtype;                      // of k and v on the device
    int n_windowed, window;                // layers with a window, its tokens
    uint64_t windowed[KV_LAYERS_MAX / 64]; // a bit for each of them, by its number in the model
};

/* The shape of the cache of a context of n tokens, from the model's. If all layers have a window, a text of up to half
 * of it is as without windows: methods may change all layers, and with its question it must stay within the window. */
static inline struct kv_shape kv_shape_of(const struct kv_shape *model, int n)
{
    struct kv_shape s = *model;

    if (s.n_layers == 0 && n <= s.window / 2) {
        s.n_layers = s.n_windowed;
        s.n_windowed = s.window = 0;
        memset(s.windowed, 0, sizeof(s.windowed));
    }
    return s;
}

static inline int kv_all_layers(const struct kv_shape *s)
{
    return s->n_layers + s->n_windowed;
}

/* The tokens of a context of n that a layer keeps, by its place in caches, without compression. */
static inline int kv_layer_tokens(const struct kv_shape *s, int place, int n)
{
    return place < s->n_layers || n < s->window ? n : s->window;
}

static inline int kv_has_window(const struct kv_shape *s, int layer)
{
    return (int)(s->windowed[layer / 64] >> layer % 64 & 1);
}

/* The place in caches of a layer of the model, and the other way round. */
static inline int kv_place(const struct kv_shape *s, int layer)
{
    int before = 0;

    for (int l = 0; l < layer; l++)
        before += kv_has_window(s, l);
    return kv_has_window(s, layer) ? s->n_layers + before : layer - before;
}

static inline int kv_number(const struct kv_shape *s, int place)
{
    int window = place >= s->n_layers, left = window ? place - s->n_layers : place, layer = 0;

    while (kv_has_window(s, layer) != window || left-- > 0)
        layer++;
    return layer;
}

#endif

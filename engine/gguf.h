/* gguf.h - the container of ggml models: typed key-value metadata, then tensors.
 *
 *     "GGUF"  u32 version (2 or 3)  u64 n_tensors  u64 n_keys
 *     n_keys    times  string key, u32 type, value        string: u64 length, bytes
 *     n_tensors times  string name, u32 n_dims, u64 dim[n_dims], u32 type, u64 offset
 *     padding to general.alignment (32 unless the key says otherwise), then the data that offsets count from
 *
 * dim[0] is the fastest; gguf_tensor turns the order round, so that dim[n_dims - 1] is. Texts are views into the file
 * (no NUL at their end). Every length, offset, type and overlap is checked by gguf_parse().
 * Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */
#ifndef EVP_GGUF_H
#define EVP_GGUF_H

#include "base/err.h"
#include "base/map.h"
#include "engine/dequant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_DIMS = 4 };

struct gguf_tensor {
    const char *name; // owned by the map of names
    enum weight_type type;
    int n_dims;
    int64_t dim[GGUF_DIMS];
    const void *at;
    uint64_t bytes;
};

struct gguf_value {
    uint32_t type;    // as in the file
    uint32_t element; // of an array
    uint64_t n;       // elements of an array; 1 otherwise
    const uint8_t *at, *end;
};

struct gguf {
    struct map keys, names; // key -> value, tensor name -> tensor
    struct gguf_value *value;
    struct gguf_tensor *tensor;
    int n_values, n_tensors;
};

struct text_view {
    const char *at;
    size_t n;
};

/* The bytes are borrowed. */
int gguf_parse(struct gguf *g, const void *bytes, size_t n, struct err *err) MUST_CHECK;
void gguf_release(struct gguf *g);

/* A key that must be there and of the kind: any integer type, any number, a text. */
int gguf_want_int(const struct gguf *g, const char *key, int64_t *out, struct err *err) MUST_CHECK;
int gguf_want_real(const struct gguf *g, const char *key, double *out, struct err *err) MUST_CHECK;
int gguf_want_text(const struct gguf *g, const char *key, struct text_view *out, struct err *err) MUST_CHECK;

/* The same, but absence leaves *out as it was. */
int gguf_may_int(const struct gguf *g, const char *key, int64_t *out, struct err *err) MUST_CHECK;
int gguf_may_real(const struct gguf *g, const char *key, double *out, struct err *err) MUST_CHECK;
int gguf_may_text(const struct gguf *g, const char *key, struct text_view *out, struct err *err) MUST_CHECK;
bool gguf_has(const struct gguf *g, const char *key);

/* An array of texts or integers, read from its start: n, then so many gguf_next_*() calls. */
struct gguf_array {
    const uint8_t *at, *end;
    uint32_t element;
    int n;
};
int gguf_want_texts(const struct gguf *g, const char *key, struct gguf_array *out, struct err *err) MUST_CHECK;
int gguf_want_ints(const struct gguf *g, const char *key, struct gguf_array *out, struct err *err) MUST_CHECK;
struct text_view gguf_next_text(struct gguf_array *a);
int64_t gguf_next_int(struct gguf_array *a);

#endif

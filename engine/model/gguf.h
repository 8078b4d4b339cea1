/* gguf.h - the container of ggml models: typed key-value metadata, then tensors.
 *
 *     "GGUF"  u32 version (2 or 3)  u64 n_tensors  u64 n_keys
 *     n_keys    times  string key, u32 type, value        string: u64 length, bytes
 *     n_tensors times  string name, u32 n_dims, u64 dim[n_dims], u32 type, u64 offset
 *     padding to general.alignment (32 unless the key says otherwise), then the data that offsets count from
 *
 * In the file dim[0] is the fastest; struct tensor has the dims in reverse order. Texts are views into the file.
 * gguf_parse() checks every length, offset, type and overlap.
 * Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */
#ifndef EVP_GGUF_H
#define EVP_GGUF_H

#include "base/err.h"
#include "base/map.h"
#include "engine/model/dequant.h"
#include "engine/model/text_view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gguf_value {
    uint32_t type;    // as in the file
    uint32_t element; // of an array
    uint64_t n;       // elements of an array; 1 otherwise
    const uint8_t *at, *end;
};

struct gguf {
    struct map keys, names; // key -> value, tensor name -> tensor
    struct gguf_value *value;
    struct tensor *tensor;
    int n_values, n_tensors;
};

/* The bytes are borrowed. ERR_FORMAT says what is wrong with them; then nothing is left to release. */
int gguf_parse(struct gguf *g, const void *bytes, size_t n, struct err *err) MUST_CHECK;
int gguf_parse_keys(struct gguf *g, const void *bytes, size_t n, struct err *err) MUST_CHECK; // no tensors
void gguf_release(struct gguf *g);

/* The value of a key of any integer type, of any number type, or a text. ERR_FORMAT when it is absent or of another
 * type. */
int gguf_want_int(const struct gguf *g, const char *key, int64_t *out, struct err *err) MUST_CHECK;
int gguf_want_real(const struct gguf *g, const char *key, double *out, struct err *err) MUST_CHECK;
int gguf_want_text(const struct gguf *g, const char *key, struct text_view *out, struct err *err) MUST_CHECK;

/* The same, but an absent key leaves *out as it was. */
int gguf_may_int(const struct gguf *g, const char *key, int64_t *out, struct err *err) MUST_CHECK;
int gguf_may_real(const struct gguf *g, const char *key, double *out, struct err *err) MUST_CHECK;
int gguf_may_text(const struct gguf *g, const char *key, struct text_view *out, struct err *err) MUST_CHECK;
bool gguf_has(const struct gguf *g, const char *key);

/* An array of texts, integers or 32-bit reals, read from its start: n elements, one per gguf_next_*() call. */
struct gguf_array {
    const uint8_t *at, *end;
    uint32_t element;
    int n;
};
int gguf_want_texts(const struct gguf *g, const char *key, struct gguf_array *out, struct err *err) MUST_CHECK;
int gguf_want_ints(const struct gguf *g, const char *key, struct gguf_array *out, struct err *err) MUST_CHECK;
int gguf_want_reals(const struct gguf *g, const char *key, struct gguf_array *out, struct err *err) MUST_CHECK;
struct text_view gguf_next_text(struct gguf_array *a);
int64_t gguf_next_int(struct gguf_array *a);
float gguf_next_real(struct gguf_array *a);

#endif

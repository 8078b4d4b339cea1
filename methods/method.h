/* method.h - the registry of KV-cache compression methods, and the way from a full cache to a version.
 *
 * Methods run after the context was prefilled once. They see the full cache and the side outputs they declared to need;
 * every config of every method is derived from that one prefill. A dropping method gives each KV pair a score (higher
 * is kept) and keeps the best n per layer and kv head; a quantiser then replaces the kept rows by what comes back from
 * dequantisation and says how many bytes a serving cache would hold. A version holds plain rows, so decoding needs no
 * special case.
 *
 * To add a method: (1) methods/NAME.c with its struct method (2) its line in methods/registry.c (3) tests/unit and a
 * golden file from an independent implementation.
 *
 * Exact definitions and sources: each methods/NAME.c opens with them. Bytes are counted in the model's serving dtype of
 * 2 bytes per number, whatever the backend computes in; they include scales, zero points, lengths of ragged heads, and
 * exclude kept positions and the container.
 */
#ifndef EVP_METHOD_H
#define EVP_METHOD_H

#include "base/err.h"
#include "kernels/backend.h"
#include "kernels/kv.h"
#include "methods/config.h"

#include <stdbool.h>
#include <stdint.h>

/* What a method needs besides K and V; prefill saves only what somebody asked for. */
enum method_need {
    NEED_NOTHING = 0,
    NEED_WINDOW_Q = 1, // post-rotary queries of the context's last `window` tokens
};

/* The uncompressed cache of one context, as prefill leaves it. Owned by the session that made it. */
struct kv_full {
    struct backend *backend;
    struct kv_shape shape;
    int n_tokens;               // T
    const struct kv_rows *rows; // [L * G], each n = T; layer-major
    int window;                 // W: queries saved; 0 when nobody asked; less than asked when T is
    void *const *window_q;      // [L]: (G, W, H/G, K) post-rotary queries of the last W tokens, of shape.dtype
};

struct method_param {
    const char *name;
    double min, max, otherwise; // bounds (inclusive); default, NAN: must be given
    bool whole;                 // only whole numbers
    const double *only;         // NAN-terminated list of allowed values, or NULL
    const char *help;           // lower case, no full stop, with unit
};

enum method_kind { METHOD_DROP, METHOD_QUANTISE };

/* Quantised form of one layer and kv head, as a payload stores it. `part` names what each piece is ("k_codes"). */
struct packed_part {
    const char *name; // static: "k_codes", "k_scales", ...
    enum dtype dtype;
    int n_dims, dim[3]; // row-major
    void *at;           // host memory, owned by the version
};

struct version; // below

struct method {
    const char *name, *summary, *source; // source: paper or code it follows
    enum method_kind kind;
    unsigned needs;                           // enum method_need
    int (*window)(const double *value);       // tokens of queries wanted, or NULL
    struct method_param param[CONFIG_PARAMS]; // name NULL ends
    /* METHOD_DROP: scores of one layer, (G, T) f32 on the device; must not depend on `drop`. n_keep says how many of T
     * pairs stay per head. */
    int (*score)(const struct kv_full *full, int layer, const double *value, float *score, struct err *err);
    /* METHOD_QUANTISE: replaces the rows of one layer and head (n, K) by dequantised ones, adds the bytes it takes to
     * *bytes, and, when `parts` is not NULL, gives the packed pieces (at most 8, host memory from malloc). */
    int (*quantise)(struct backend *be, struct kv_rows rows, int head_dim, const double *value, int64_t *bytes,
                    struct packed_part *parts, int *n_parts, struct err *err);
};

/* The registry, in the order it is printed; NULL at its end. */
extern const struct method *const method_registry[];
const struct method *method_find(const char *name, size_t n);

/* Pairs a dropping method keeps of T: (int)(T * (1 - drop)) in double arithmetic, as kvpress computes it, at least 1.
 */
int method_n_keep(int n_tokens, double drop);

/* ---- versions ---------------------------------------------------------- */

enum { VERSION_PARTS = 8 };

struct version {
    const struct config *config; // borrowed
    struct kv_shape shape;
    int n_tokens;         // the context's original length: the position of the next token
    struct kv_rows *rows; // [L * G]; for `none` they point into the full cache
    int64_t bytes;
    double keep_frac, size_frac; // pairs kept / pairs; bytes / uncompressed bytes
    /* For payloads, when asked: */
    int32_t **kept;            // [L * G]: ascending positions of the kept rows, host memory; NULL when all are kept
    struct packed_part *parts; // [L * G * VERSION_PARTS]; name NULL: no such part; NULL when not quantised
    /* private */
    struct backend *backend;
    void *arena; // device memory of the rows; NULL for `none`
};

/* Scores of the methods already used on this context, kept so that every drop of a method costs one scoring. */
struct compressor;

/* `full` must outlive it. */
struct compressor *compressor_new(const struct kv_full *full, struct err *err);
void compressor_free(struct compressor *c);

enum version_detail { VERSION_ROWS, VERSION_PAYLOAD }; // rows only, or also kept positions and packed parts

/* Derives one version. Device memory: about size_frac... of keep_frac times the full cache (rows are dequantised). */
int compressor_version(struct compressor *c, const struct config *config, enum version_detail detail,
                       struct version *out, struct err *err) MUST_CHECK;
void version_release(struct version *v); // zeroed is fine

/* What prefill must save so that all these configs can be derived: the union of needs, the largest window. */
void configs_need(const struct config *configs, int n, unsigned *needs, int *window);

/* Exact bytes of a version without computing it; equals version.bytes. -1 for a method whose size depends on data. */
int64_t config_bytes(const struct config *config, const struct kv_shape *shape, int n_tokens);
int64_t kv_bytes(const struct kv_shape *shape, int n_tokens); // uncompressed, 2-byte serving dtype

#endif

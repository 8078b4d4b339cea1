/* method.h - the registry of KV-cache compression methods, and the way from a full cache to a variant.
 *
 * Methods run after the context was prefilled once. They see the full cache and the side outputs they declared to need;
 * every config of every method is derived from that one prefill. A dropping method gives each KV pair a score (higher
 * is kept) and keeps the best n per layer and kv head; a quantiser then packs the kept rows, and the variant gets what
 * comes back from unpacking them. A variant holds plain rows, so decoding needs no special case.
 *
 * To add a method: (1) methods/NAME.c with its struct method (2) its line in methods/registry.c (3) tests/unit and a
 * golden file from an independent implementation.
 *
 * Exact definitions and sources: each methods/NAME.c opens with them. Bytes are counted in the model's serving dtype of
 * 2 bytes per number, whatever the backend computes in; they include scales and minima, and exclude kept positions
 * (keys carry their rotation) and the container.
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

/* One tensor of one layer of a variant, as a serving cache holds it and a payload stores it. `k` and `v` are the rows
 * kept in full: the last dim[1] rows of each head, in the serving dtype. */
struct packed_part {
    const char *name; // static: "k", "v", "k_codes", "k_scales", ...
    enum dtype dtype;
    int64_t dim[3]; // row-major; dim[0] is G
    void *at;
};
enum { PART_MAX = 8 };

struct method {
    const char *name, *summary, *source; // source: paper or code it follows
    enum method_kind kind;
    unsigned needs;                           // enum method_need
    int (*window)(const double *value);       // tokens of queries wanted, or NULL
    struct method_param param[CONFIG_PARAMS]; // name NULL ends; the first of a dropping method is `drop`

    /* What bounds cannot say, or NULL. head_dim 0: no model is known yet. */
    int (*check)(const double *value, int head_dim, struct err *err);

    /* METHOD_DROP: scores of all heads, (L * G, T) f32 on the device; must not depend on `drop`. */
    int (*score)(const struct kv_full *full, const double *value, float *score, struct err *err);

    /* METHOD_QUANTISE. parts: what n tokens of one layer become, `k` and `v` included (`at` unset); returns how many.
     * quantise fills all parts but `k` and `v` (device memory) from rows[G]; dequantise is the way back, and leaves the
     * rows which `k` and `v` hold alone. */
    int (*parts)(const double *value, const struct kv_shape *shape, int n, struct packed_part part[PART_MAX]);
    void (*quantise)(struct backend *be, const struct kv_rows *rows, const struct kv_shape *shape, const double *value,
                     const struct packed_part *part);
    void (*dequantise)(struct backend *be, const struct kv_rows *rows, const struct kv_shape *shape,
                       const double *value, const struct packed_part *part);
};

/* The registry, in the order it is printed; NULL at its end. */
extern const struct method *const method_registry[];
const struct method *method_find(const char *name, size_t n);

/* Pairs a dropping method keeps of T: (int)(T * (1 - drop)) in double arithmetic, as kvpress computes it, at least 1.
 */
int method_n_keep(int n_tokens, double drop);

/* ---- a config and a model ---------------------------------------------- */

/* ERR_USAGE when a model of this shape cannot be compressed that way (quantiser groups that do not divide head_dim). */
int config_check(const struct config *config, const struct kv_shape *shape, struct err *err) MUST_CHECK;

/* What prefill must save so that all these configs can be derived: the union of needs, the largest window. */
void configs_need(const struct config *configs, int n, unsigned *needs, int *window);

/* Rows each head keeps of n_tokens, and the tensors of one layer (`at` NULL); returns how many. */
int config_n_keep(const struct config *config, int n_tokens);
int config_parts(const struct config *config, const struct kv_shape *shape, int n_tokens,
                 struct packed_part part[PART_MAX]);
size_t packed_part_bytes(const struct packed_part *part);

/* Exact bytes of a variant without computing it: those of its parts, all layers; equals variant.bytes. */
int64_t config_bytes(const struct config *config, const struct kv_shape *shape, int n_tokens);
int64_t kv_bytes(const struct kv_shape *shape, int n_tokens); // uncompressed, 2-byte serving dtype

/* ---- variants ---------------------------------------------------------- */

struct variant {
    const struct config *config; // borrowed
    struct kv_shape shape;
    int n_tokens;         // the context's original length: the position of the next token
    struct kv_rows *rows; // [L * G]; for `none` they point into the full cache
    int64_t bytes;
    double keep_frac, size_frac; // pairs kept / pairs; bytes / uncompressed bytes
    /* Seconds: making this variant alone, scoring included even where another variant's scores were used again; and
     * getting plain rows back when it is loaded (0 unless quantised). */
    double compress_s, decompress_s;
    /* With VARIANT_PAYLOAD, in host memory: */
    int32_t *kept; // ascending positions of the kept rows, heads one after another as in rows; NULL when all are kept
    struct packed_part *parts; // [L * n_parts]; `k` and `v` have at NULL: they are the last dim[1] rows
    int n_parts;               // per layer
    /* private */
    struct backend *backend;
    void *arena; // device memory of the rows; NULL for `none`
};

/* Scores of the methods already used on this context, kept so that every drop of a method costs one scoring. */
struct compressor;

/* `full` must outlive it. */
struct compressor *compressor_new(const struct kv_full *full, struct err *err);
void compressor_free(struct compressor *c);

enum variant_detail { VARIANT_ROWS, VARIANT_PAYLOAD }; // rows only, or also kept positions and packed parts

/* Derives one variant; `config` must outlive it. Device memory: keep_frac times the full cache (rows are unpacked). */
int compressor_variant(struct compressor *c, const struct config *config, enum variant_detail detail,
                       struct variant *out, struct err *err) MUST_CHECK;
void variant_release(struct variant *v); // zeroed is fine

#endif

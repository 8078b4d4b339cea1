/* method.h - the registry of KV-cache compression methods, and the way from a full cache to a variant.
 *
 * Methods run after the context was prefilled once. They see the full cache and the side outputs they declared to need;
 * every config of every method is derived from that one prefill. A dropping method gives each KV pair a score (higher
 * is kept) and keeps the best n per layer and kv head; a quantiser then packs the kept rows, and the variant gets what
 * comes back from unpacking them. A variant holds plain rows, so decoding needs no special case.
 *
 * To add a method: (1) methods/NAME.c with its definition, its source and its struct method (2) its extern in
 * methods/registry.h and its line in methods/registry.c (3) if it needs more than K, V and window queries, a bit in
 * enum method_need, saved by session_prefill() in engine/session.c (4) if it computes something new on the device, an
 * op as kernels/backend.h says (5) its config names, sizes and variants in tests/unit/methods.c, and the list of
 * methods in the messages there (6) its configs in CONFIGS of tests/golden/methods/make.py and
 * tests/golden/methods/oracle, which compare kept positions and answers with kvpress or another independent
 * implementation (7) its name in the list of methods in README.md. A table's columns are the same for every method; a
 * method that measures something more adds a column as profiler/table_column.h says.
 *
 * Each methods/NAME.c opens with the method's exact definition and its source. Bytes are counted in the model's serving
 * dtype of 2 bytes per number, whatever the backend computes in; they include scales and minima, and exclude kept
 * positions (keys carry their rotation) and the container.
 */
#ifndef EVP_METHOD_H
#define EVP_METHOD_H

#include "base/err.h"
#include "kernels/backend.h"
#include "kernels/kv.h"
#include "methods/config.h"

#include <stdbool.h>
#include <stdint.h>

/* What a method needs besides K and V. Prefill saves only what a config asks for. */
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
    int window;                 // W: queries saved: those asked for, at most T
    void *const *window_q;      // [L]: (G, W, H/G, K) post-rotary queries of the last W tokens, of shape.dtype
};

struct method_param {
    const char *name, *alias;   // alias: another name that is read, or NULL
    double min, max, otherwise; // bounds (inclusive); default, NAN: must be given
    bool whole;                 // only whole numbers
    const double *only;         // NAN-terminated list of allowed values, or NULL
    const char *help;           // lower case, no full stop, with unit
};

enum method_kind { METHOD_DROP, METHOD_QUANTISE };

/* One tensor of one layer of a variant, as a serving cache and a payload hold it. `k` and `v` are the rows kept in
 * full: the last dim[1] rows of each head, in the serving dtype. */
struct packed_part {
    const char *name; // static: "k", "v", "k_codes", "k_scales", ...
    enum dtype dtype;
    int64_t dim[3]; // row-major; dim[0] is G
    void *at;
};
enum { PART_MAX = 8 };

/* One layer to be packed or unpacked. */
struct packed_layer {
    const struct kv_rows *rows; // [G]
    const struct kv_shape *shape;
    const double *value;            // of the quantiser's parameters
    const struct packed_part *part; // all parts of the layer; `k` and `v` are in rows
};

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
     * quantise fills all parts but `k` and `v` (device memory) from the rows; dequantise fills the rows from the parts,
     * except those that `k` and `v` hold. */
    int (*parts)(const double *value, const struct kv_shape *shape, int n, struct packed_part part[PART_MAX]);
    void (*quantise)(struct backend *be, const struct packed_layer *layer);
    void (*dequantise)(struct backend *be, const struct packed_layer *layer);
};

/* The registry, in the order it is printed; NULL at its end. method_find: NULL for an unknown name. */
extern const struct method *const method_registry[];
const struct method *method_find(const char *name, size_t n);

/* ---- a config and a model ---------------------------------------------- */

/* ERR_USAGE when the config does not fit a model of this shape (a quantiser's groups must divide head_dim). */
int config_check(const struct config *config, const struct kv_shape *shape, struct err *err) MUST_CHECK;

/* What prefill must save for these configs: the union of needs, the largest window. */
void configs_need(const struct config *configs, int n, unsigned *needs, int *window);

/* Rows each head keeps: (int)(n_tokens * (1 - drop)) in double arithmetic, as kvpress computes it, at least 1. */
int config_n_keep(const struct config *config, int n_tokens);

/* The tensors of one layer (`at` NULL); returns how many. */
int config_parts(const struct config *config, const struct kv_shape *shape, int n_tokens,
                 struct packed_part part[PART_MAX]);
size_t packed_part_bytes(const struct packed_part *part);

/* Exact bytes of a variant, without computing it: those of its parts, all layers. Equals variant.bytes. */
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
    /* Seconds: to make this variant alone, with scoring even where another variant's scores were reused; and to get
     * plain rows back when it is loaded (0 unless quantised). */
    double compress_s, decompress_s;
    /* With VARIANT_PAYLOAD, in host memory: */
    int32_t *kept; // ascending positions of the kept rows, heads one after another as in rows; NULL when all are kept
    struct packed_part *parts; // [L * n_parts]; `k` and `v` have at NULL: they are the last dim[1] rows
    int n_parts;               // per layer
    /* private */
    struct backend *backend;
    void *arena; // device memory of the rows; NULL for `none`
};

/* Makes the variants of one context. It keeps the scores of the methods used so far, so that all drops of a method cost
 * one scoring. */
struct compressor;

/* `full` must outlive the compressor. */
struct compressor *compressor_new(const struct kv_full *full, struct err *err);
void compressor_free(struct compressor *c);

enum variant_detail { VARIANT_ROWS, VARIANT_PAYLOAD }; // rows only, or also kept positions and packed parts

/* Derives one variant; `config` must outlive it. It takes keep_frac times the device memory of the full cache, since
 * its rows are unpacked. ERR_USAGE as config_check(); then nothing is left to release. */
int compressor_variant(struct compressor *c, const struct config *config, enum variant_detail detail,
                       struct variant *out, struct err *err) MUST_CHECK;
void variant_release(struct variant *v); // zeroed is fine

#endif

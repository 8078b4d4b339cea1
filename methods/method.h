/* method.h - the registry of KV-cache compression methods, and the way from a full cache to a variant.
 *
 * Methods run after the context was prefilled once. They see the full cache and the side outputs they declared to need;
 * every config of every method is derived from that one prefill. A config is a chain of stages, one of each kind at
 * most, in this order:
 *     budget     shares the pairs that a layer keeps among its heads, from their scores
 *     drop       gives each KV pair a score (higher is kept); the best of each head are kept, as many as the budget
 *                says, or (int)(T * (1 - drop)) where there is none
 *     quantise   packs the kept rows; the variant gets what comes back from unpacking them
 * A variant holds plain rows, so decoding needs no special case.
 *
 * To add a method: (1) methods/NAME.c with its definition, its source and its struct method (2) its extern in
 * methods/registry.h and its line in methods/registry.c (3) if it needs more than K, V, window queries and column sums,
 * a bit in enum method_need, saved by session_prefill() in engine/transformer/session.c and counted in configs_side_bytes() (4) if
 * it computes something new on the device, an op as kernels/backend.h says; memory it takes of the pool while it scores
 * goes into its score_bytes (5) its config names, sizes and variants in tests/unit/methods.c and tests/unit/variants.c,
 * and the list of methods in the messages there (6) its configs in CONFIGS of tests/golden/methods/make.py and
 * tests/golden/methods/oracle, which compare kept positions and answers with kvpress or another independent
 * implementation (7) its name in the list of methods in README.md. A new kind of stage goes into enum method_kind, at
 * its place in the chain, and into config.c's check_chain(). A table's columns are the same for every method; a method
 * that measures something more adds a column as profiler/table/table_column.h says.
 *
 * Each methods/NAME.c opens with the method's exact definition and its source. Bytes are counted in the model's serving
 * dtype of 2 bytes per number, whatever the backend computes in; they include scales, minima and the lengths of ragged
 * heads, and exclude kept positions (keys carry their rotation) and the container.
 */
#ifndef EVP_METHOD_H
#define EVP_METHOD_H

#include "base/err.h"
#include "kernels/backend.h"
#include "kernels/kv.h"
#include "methods/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a method needs besides K and V. Prefill saves only what a config asks for. */
enum method_need {
    NEED_NOTHING = 0,
    NEED_WINDOW_Q = 1,    // post-rotary queries of the context's last `window` tokens
    NEED_COLUMN_SUMS = 2, // the attention each key got from all tokens
};

/* The uncompressed cache of one context, as prefill leaves it. Owned by the session that made it. Addresses are the
 * device's but for `rows` and `window_q`, which are lists of such. */
struct kv_full {
    struct backend *backend;
    struct pool *pool; // where scores and variants take their memory
    struct kv_shape shape;
    int n_tokens;               // T
    struct kv_store store;      // slot t holds token t
    const struct kv_rows *rows; // [L * G], each n = T; layer-major
    const float *cos, *sin;     // (positions, half the rotated columns): rotary angles, for more positions than T
    int n_head;                 // tokens of the prompt before the text: the chat template's, first in the cache
    int window;                 // W: queries saved: those asked for, at most T
    void *const *window_q;      // [L]: (G, W, H/G, K) post-rotary queries of the last W tokens, of shape.dtype
    const float *column_sums;   // (L * G, T): the attention of all tokens and H/G heads to each key, or NULL
    double column_sums_s;       // seconds that they took
};

struct method_param {
    const char *name, *alias;   // alias: another name that is read, or NULL
    double min, max, otherwise; // bounds (inclusive); default, NAN: must be given
    bool whole;                 // only whole numbers
    const double *only;         // NAN-terminated list of allowed values, or NULL
    const char *const *words;   // NULL-terminated: values are these words, and their numbers from 0; or NULL
    bool budget;                // decides how many pairs are kept; scores do not depend on it
    const char *help;           // lower case, no full stop, with unit
};

enum method_kind { METHOD_BUDGET, METHOD_DROP, METHOD_QUANTISE }; // in the order of a chain

/* What a quantiser makes of one head: one of these matrices for each of its tensors. `k` and `v` are the rows kept in
 * full: the last of the head, K wide, in the serving dtype. */
struct head_part {
    const char *name; // static: "k", "v", "k_codes", "k_scales", ...
    enum dtype dtype;
    int64_t rows, cols;
};

/* One tensor of one layer of a variant, as a serving cache and a payload hold it: the matrices of its heads one after
 * another. Where all heads of the layer have the same length it is [G, rows, cols]. In a ragged layer `k` and `v` are
 * [sum of rows, K], the others have one dimension, and `lengths` [G] says how many tokens each head has. */
struct packed_part {
    const char *name; // static: that of a head_part, or "lengths"
    enum dtype dtype;
    int n_dims;
    int64_t dim[3]; // row-major
    void *at;
};
enum { HEAD_PART_MAX = 8, PART_MAX = HEAD_PART_MAX + 1 };

/* One layer to be packed or unpacked. */
struct packed_layer {
    const struct kv_rows *rows; // [G]
    const struct kv_shape *shape;
    const double *value; // of the quantiser's parameters
    int layer;
    void *const *at; // [G * HEAD_PART_MAX], on the device: part i of head g is at[g * HEAD_PART_MAX + i]; not k and v
};

struct method {
    const char *name, *summary, *source; // source: paper or code it follows
    enum method_kind kind;
    unsigned needs;                           // enum method_need
    int (*window)(const double *value);       // tokens of queries wanted, or NULL
    struct method_param param[CONFIG_PARAMS]; // name NULL ends; the first of a dropping method is `drop`

    /* What bounds cannot say, or NULL. head_dim 0: no model is known yet. */
    int (*check)(const double *value, int head_dim, struct err *err);

    /* METHOD_BUDGET: count (G), on the device: how many pairs each head of a layer keeps, G * n_keep together; from the
     * scores (G, T) of the layer. */
    void (*share)(const struct kv_full *full, const double *value, int n_keep, const float *score, int32_t *count);

    /* METHOD_DROP. score: scores of all heads, (L * G, T) f32 on the device. It does not depend on parameters that are
     * `budget`, and may take memory of the pool, which its caller gives back. score_bytes: how much, when `window`
     * queries were saved; NULL: none. keep: pairs that each head of a layer keeps, 1 .. n_tokens; NULL: as drop says.
     */
    int (*score)(const struct kv_full *full, const double *value, float *score, struct err *err);
    size_t (*score_bytes)(const double *value, const struct kv_shape *shape, int n_tokens, int window);
    int (*keep)(const double *value, const struct kv_shape *shape, int n_tokens, int layer);

    /* METHOD_QUANTISE. parts: what n tokens of one head become, `k` and `v` included; returns how many. n tokens of one
     * head never pack into less than the same tokens in several heads. quantise fills all parts but `k` and `v` from
     * the rows; dequantise fills the rows from the parts, except those that `k` and `v` hold. */
    int (*parts)(const double *value, const struct kv_shape *shape, int layer, int n,
                 struct head_part part[HEAD_PART_MAX]);
    void (*quantise)(struct backend *be, const struct packed_layer *layer);
    void (*dequantise)(struct backend *be, const struct packed_layer *layer);
};

/* The registry, in the order it is printed; NULL at its end. method_find: by a name in any
 * capitals; NULL for an unknown one. */
extern const struct method *const method_registry[];
const struct method *method_find(const char *name, size_t n);

/* ---- a config and a model ---------------------------------------------- */

/* ERR_USAGE when the config does not fit a model of this shape (a quantiser's groups must divide head_dim). */
int config_check(const struct config *config, const struct kv_shape *shape, struct err *err) MUST_CHECK;

/* The stage of this kind, or NULL. */
const struct config_stage *config_stage_of(const struct config *config, enum method_kind kind);

/* Rows each head of a layer keeps, the mean where heads differ: 1 .. n_tokens. Most methods: (int)(n_tokens * (1 -
 * drop)) in double arithmetic, as kvpress computes it, at least 1. */
int config_n_keep(const struct config *config, const struct kv_shape *shape, int n_tokens, int layer);
double config_keep_frac(const struct config *config, const struct kv_shape *shape, int n_tokens); // of all pairs

/* Do heads of one layer differ in length? Which length each has is known only from scores. */
bool config_is_ragged(const struct config *config);

/* Rows of the heads of one layer. */
struct layer_lengths {
    int layer;
    const int *n; // [G]
};

/* The tensors of one layer (`at` NULL); returns how many: the same in all layers. */
int config_parts(const struct config *config, const struct kv_shape *shape, const struct layer_lengths *lengths,
                 struct packed_part part[PART_MAX]);
size_t packed_part_bytes(const struct packed_part *part);

/* Exact bytes of a variant where they do not depend on the data, and equal variant.bytes; or -1. */
int64_t config_bytes_known(const struct config *config, const struct kv_shape *shape, int n_tokens);
int64_t kv_bytes(const struct kv_shape *shape, int n_tokens); // uncompressed, 2-byte serving dtype

/* ---- a list of configs, and the memory they take ----------------------- */

/* What prefill must save for these configs: the union of needs, the largest window. */
void configs_need(const struct config *const *configs, int n, unsigned *needs, int *window);

/* Bytes of the device that a piece of work takes of the pool, to the byte. */
struct memory_need {
    size_t kept, making; // what stays; what it takes besides for a while
};

/* What prefill saves for these configs: window queries of all layers in one piece, and column sums in one. */
size_t configs_side_bytes(const struct config *const *configs, int n, const struct kv_shape *shape, int n_tokens);
/* compressor_new(), after a prefill that saved what the same configs need. */
struct memory_need configs_score_bytes(const struct config *const *configs, int n, const struct kv_shape *shape,
                                       int n_tokens);
/* compressor_variant(): the rows stay. */
struct memory_need config_variant_bytes(const struct config *config, const struct kv_shape *shape, int n_tokens);

/* ---- variants ---------------------------------------------------------- */

struct variant {
    const struct config *config; // borrowed
    struct kv_shape shape;
    int n_tokens;                // the context's original length: the position of the next token
    struct kv_rows *rows;        // [L * G]; in the pool, for `none` in the full cache
    int64_t bytes;               // of all parts
    double keep_frac, size_frac; // pairs kept / pairs; bytes / uncompressed bytes
    /* Seconds: to make this variant alone, with scoring even where another variant's scores were reused; and to get
     * plain rows back when it is loaded (0 unless quantised). */
    double compress_s, decompress_s;
    /* Layer by layer. With VARIANT_PAYLOAD `at` is in host memory, but for `k` and `v`: they are the last rows of each
     * head. */
    struct packed_part *parts; // [L * n_parts]
    int n_parts;               // per layer
    /* With VARIANT_PAYLOAD: ascending positions of the kept rows, heads one after another as in rows; NULL when all are
     * kept. */
    int32_t *kept;
    struct backend *backend; // private
};

/* Makes the variants of one context. It keeps the scores of the methods, so that all drops of a method cost one
 * scoring. */
struct compressor;

/* Computes all scores that these configs want, in full->pool; `full` must outlive the compressor. */
struct compressor *compressor_new(const struct kv_full *full, const struct config *const *configs, int n,
                                  struct err *err);
void compressor_free(struct compressor *c); // NULL is fine; the pool's memory is its owner's to reset

enum variant_detail { VARIANT_ROWS, VARIANT_PAYLOAD }; // rows only, or also kept positions and packed parts

/* Derives one variant; `config` is one of those the compressor was made with, or has their scores, and must outlive the
 * variant. Its rows stay in the pool until the owner of the pool resets it to its mark. ERR_USAGE as config_check(). On
 * failure nothing is left to release, and the pool is as before. */
int compressor_variant(struct compressor *c, const struct config *config, enum variant_detail detail,
                       struct variant *out, struct err *err) MUST_CHECK;
void variant_release(struct variant *v); // host memory; zeroed is fine

#endif

/* method.h - KV-cache compression methods: what a method sees and says, and the registry. variants/ makes variants by
 * them.
 *
 * Methods work after the context is prefilled once. They see the uncompressed cache and the side outputs that they
 * declare in `needs`; every config of every method is derived from that one prefill. A config is a chain of stages, at
 * most one of each kind, in this order:
 *     budget     distributes the pairs that a layer keeps over its heads by their scores, or rewrites the scores, or
 *                both
 *     drop       scores each KV pair; each head keeps its highest scores: as many pairs as the budget gives it, or
 *                (int)(T * (1 - drop)) without a budget
 *     merge      adds what is dropped to the values that are kept
 *     quantise   packs the kept rows; the variant gets the unpacked rows
 *
 * To add a method:
 *   1. methods/NAME.c with its definition, its source and its struct method, which points at the struct of its kind;
 *   2. its extern in methods/registry.h and its line in methods/registry.c;
 *   3. if it needs more than K, V, window queries and column sums: a bit in enum method_need, saved by
 *      session_prefill() in engine/transformer/session.c and counted in configs_side_bytes() of variants/sizes.c; a
 *      pass of its own, as that in engine/transformer/repeat.c, also in engine/transformer/plan.c;
 *   4. its scores from ops of the device (kernels/backend.h); scores.bytes must return the pool memory that it takes
 *      while it scores. Where no op computes them and speed does not suffer: scores.head, on the host
 *      (methods/head_work.h);
 *   5. its config names, sizes and variants in tests/unit/methods.c and tests/unit/variants.c, and its name in the
 *      messages there that list methods;
 *   6. its configs in CONFIGS of tests/golden/methods/make.py and tests/golden/methods/oracle, which compare kept
 *      positions and answers with kvpress or another independent implementation;
 *   7. its name in docs/profiling.md, in cmd/tiers_for.c if engines can hold what it keeps, and a config of it in the
 *      list `all` of config.c.
 * A new kind of stage goes into enum method_kind, in the order of the chain, gets a struct below, and goes into
 * check_chain() in config.c. A table's columns are the same for every method; a method that measures something more
 * adds a column as profiler/table/table_column.h says.
 *
 * Each methods/NAME.c opens with the method's exact definition and its source. Bytes are counted in the model's serving
 * dtype of 2 bytes per number, whatever dtype the backend computes in. They include scales, minima and the lengths of
 * ragged heads; they exclude kept positions (keys carry their rotation) and the container.
 */
#ifndef EVP_METHOD_H
#define EVP_METHOD_H

#include "base/err.h"
#include "codes/row_format.h"
#include "kernels/backend.h"
#include "kernels/kv.h"
#include "methods/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a method needs in addition to K and V. Prefill saves only what a config asks for. */
enum method_need {
    NEED_NOTHING = 0,
    NEED_WINDOW_Q = 1,    // post-rotary queries of the context's last `window` tokens
    NEED_COLUMN_SUMS = 2, // the attention that each key gets from all tokens
    NEED_MOMENTS = 4,     // sums over the queries before their rotation, and over their products
    NEED_VALUE_NORMS = 8, // the L1 norm of each value behind the output projection
    NEED_REPEAT = 16,     // the most attention that each key gets when the model repeats the context
};
enum {
    MOMENT_FIRST = 4,      // the first token whose queries count in moments
    POSITIONS_MORE = 4096, // positions after a context for which there are angles when moments are needed
};

/* The uncompressed cache of one context, as prefill leaves it. Owned by the session that made it. All addresses are on
 * the device, except that `rows` and `window_q` are host lists of device addresses. Methods see the L layers that keep
 * every token, and side outputs are of these alone; layers with a window lie behind them in `store` and `rows`. */
struct kv_full {
    struct backend *backend;
    struct pool *pool; // memory for scores and variants
    struct kv_shape shape;
    int n_tokens;               // T
    struct kv_store store;      // slot t holds token t
    const struct kv_rows *rows; // [kv_all_layers() * G], each n = T; layer-major
    const float *cos, *sin;     // (positions, half the rotated columns): rotary angles, for more positions than T, with
                                // moments for T + POSITIONS_MORE at least
    int window;                 // W: tokens whose queries are saved: the window asked for, at most T
    void *const *window_q;      // [L]: (G, W, H/G, K) post-rotary queries of the last W tokens, of shape.dtype
    const float *column_sums;   // (L * G, T): the attention of all tokens and H/G heads to each key, or NULL
    const float *repeat_max;    // (L * G, T): of the H/G heads of all tokens that repeat a key's chunk; or NULL
    int n_head;                 // tokens of the chat template before the text, first in the cache
    int rotary;                 // rotated columns
    const uint64_t *unrotated;  // a bit for each layer without rotation
    float scale, cap;           // of q . k in the model's attention, as in struct attn_job
    const float *moments;       // (L * H, K + 1, K): as in struct moment_job, of tokens MOMENT_FIRST .. T - 1, or NULL
    const float *value_norms;   // (L * G, T) in host memory: |W_o v|_1, the mean over the H/G heads, or NULL
    double column_sums_s, repeat_s, moments_s, value_norms_s; // seconds to compute each
};

struct evp_head; // methods/evp_method.h
struct evp_method;
struct host_kept; // methods/head_work.h

/* The scores of one layer, in host memory, for one drop. */
struct layer_scores {
    const struct kv_full *full;
    const struct config_stage *drop; // the dropping method that gave the scores
    int layer, n_keep;               // pairs that each head keeps
    float *score;                    // (G, T)
    int *length;                     // [G]: pairs that each head keeps: n_keep, unless a budget with `most` sets it
};

struct method_param {
    const char *name, *alias;   // alias: another accepted name, or NULL
    double min, max, otherwise; // bounds (inclusive); default; NAN: no default, must be given
    bool whole;                 // only whole numbers
    bool window;                // the last tokens whose queries the method needs
    const double *only;         // NAN-terminated list of allowed values, or NULL
    const char *const *words;   // NULL-terminated: the value is one of these words, stored as its index; or NULL
    bool budget;                // affects what is done with scores, such as how many pairs are kept, not the scores
    const char *help;           // lower case, no full stop, with unit
};

enum kv_side { KEYS, VALUES };

/* One matrix of one head of a variant. A quantiser makes several of them from a head. `k` and `v` are the rows kept in
 * full: the last rows of the head, K columns, in the serving dtype. */
struct head_part {
    const char *name; // static: "k", "v", "k_codes", "k_scales", ...
    enum dtype dtype;
    int64_t rows, cols;
};

/* One tensor of one layer of a variant, as a serving cache and a payload hold it: the matrices of all heads one after
 * another. Where all heads have the same length its shape is [G, rows, cols]. In a ragged layer `k` and `v` are [sum of
 * rows, K], the others have one dimension, and `lengths` [G] has the tokens of each head. */
struct packed_part {
    const char *name; // static: a head_part's name, or "lengths"
    enum dtype dtype;
    int n_dims;
    int64_t dim[3]; // row-major
    void *at;
    bool at_most; // dim[0] depends on the data; until that is coded, dim[0] is the most that it can be
};
enum { HEAD_PART_MAX = 8, PART_MAX = 11 };
size_t packed_part_bytes(const struct packed_part *part);

/* One layer to be packed or unpacked. */
struct packed_layer {
    const struct kv_rows *rows; // [G]
    const struct kv_shape *shape;
    const struct config_stage *stage; // the quantiser, or a method with `whole`
    const float *constants;           // of the host, as struct method_pack makes them
    int whole;                        // rows at the end of each head that are not packed, of a method with `whole`
    void *const *at; // [G * HEAD_PART_MAX], on the device: at[g * HEAD_PART_MAX + i] is head g's matrix i; k, v unused
};

/* Neighbouring layers whose heads share the pairs that they keep; layers 0: each head of one layer keeps the same. */
struct config_share {
    int layers;
    int64_t pairs; // that these layers, or this one layer, keep together
    int floor;     // each head keeps at least so many of its own
};

/* The tokens of the heads of one layer. */
struct layer_lengths {
    int layer;
    const int *n; // [G]
    int whole;    // of each, the rows that stay whole; only where the config has a method with `whole`
    int n_tokens; // of the context
};

/* A layer of a method that keeps all rows and reads some. */
struct stored_layer {
    const struct kv_full *full;
    int number, n;            // of the layer; rows that are read of each head
    const int32_t *kept;      // (G, n): their ascending positions, in host memory; NULL where all are read
    const float *score;       // (T) of a head, in host memory
    struct packed_part *part; // as parts() lists them, with memory
};

/* The keys or the values of one layer in host memory. */
struct coded_rows {
    const struct kv_shape *shape;
    const double *value; // of the quantiser's parameters
    struct layer_lengths lengths;
    bool keys;                // or values
    float *x;                 // (sum of n, K): head after head
    struct packed_part *part; // the layer's, as parts() lists them
};

/* Distributes the pairs that a layer keeps over its heads, by floor, or by rescore. */
struct method_budget {
    /* A layer keeps G * n_keep pairs; how many each head keeps of its own, the best first. The others are the best of
     * the layer's other pairs. */
    int (*floor)(const double *value, int n_keep);
    /* Rewrites the scores of a layer for one drop. */
    int (*rescore)(const struct layer_scores *layer, const double *value, struct err *err);
    /* With rescore: pairs that each head keeps at most. NULL: as many of a layer as without the budget. */
    int (*most)(const double *value, double drop, int n_tokens);
};

/* The scores of every KV pair, by one of the first four. They do not depend on parameters with `budget`, unless
 * by_drop (NULL: no) says that they do; then each drop is scored by itself. */
struct method_scores {
    /* Of all heads, (L * G, T) f32 on the device. It may take memory from the pool; the caller resets the pool. */
    int (*all)(const struct kv_full *full, const double *value, float *score, struct err *err);
    /* Of one head, (T), on the host; several threads call it at once (methods/head_work.h). */
    int (*head)(const struct evp_head *head, const double *value, float *score, struct err *err);
    /* As `all`, and gives every layer a share (L), 0 .. 1. */
    int (*shares)(const struct kv_full *full, const double *value, float *score, double *share, struct err *err);
    /* A user's own method, which scores, and may say what it keeps. */
    const struct evp_method *plugin;
    /* The pool memory that scoring takes, when `window` queries are saved; NULL: none. */
    size_t (*bytes)(const double *value, const struct kv_shape *shape, int n_tokens, int window);
    bool (*by_drop)(const double *value);
};

/* A dropping method that keeps all rows, of which it reads some to answer, and takes no other stage beside it: share *
 * T of each head in a layer with this share, those with the highest scores. */
struct method_stored {
    /* A layer's tensors of the rows that are not read, behind `k` and `v`; returns how many. */
    int (*parts)(const double *value, const struct kv_shape *shape, const struct layer_lengths *lengths,
                 struct packed_part part[PART_MAX]);
    /* Fills them. */
    int (*store)(const struct stored_layer *layer, const double *value, struct err *err);
    /* Bytes of a layer that are not read. */
    int64_t (*unread)(const double *value, const struct kv_shape *shape, const struct layer_lengths *lengths);
};

/* Says which pairs are kept. Its first parameter is `drop`, unless it has `stored`. */
struct method_drop {
    struct method_scores scores;
    /* Pairs that each head of a layer keeps, 1 .. n_tokens; NULL: (int)(n_tokens * (1 - drop)), at least 1. */
    int (*keep)(const double *value, const struct kv_shape *shape, int n_tokens, int layer);
    /* Instead of keep, and without a budget: the heads of how many layers share, 1 or all, and the pairs that they keep
     * together. */
    struct config_share (*share)(const double *value, const struct kv_shape *shape, int n_tokens);
    const struct method_stored *stored;
};

/* Changes v (n, K), copies of the values that a head keeps, by those that it drops; on the host, by several threads at
 * once. scores, or none: what it needs to know of every pair. */
struct method_merge {
    int (*merge)(const struct evp_head *head, const struct host_kept *kept, const double *value, float *v,
                 struct err *err);
    struct method_scores scores;
};

/* A quantiser that works in host memory and packs all rows. */
struct method_coder {
    /* A layer's tensors of all heads together, behind `k` and `v`, which have no rows; returns how many. */
    int (*parts)(const double *value, const struct kv_shape *shape, const struct layer_lengths *lengths,
                 struct packed_part part[PART_MAX]);
    /* Allocates and fills the tensors of the keys or values, and sets the sizes that depend on them. */
    int (*encode)(const struct coded_rows *rows, struct err *err);
    /* Fills the rows from the tensors. ERR_FORMAT: they are damaged. */
    int (*decode)(const struct coded_rows *rows, struct err *err);
    /* Does the size of tensor i of a file, which depends on the data, agree with the others? part[].at may be any
     * address. */
    bool (*check_part)(const struct packed_part *part, int i);
};

/* Packs the kept rows: `rows`, or `parts` and `item`, or a coder. */
struct method_pack {
    /* Every row is packed by itself, in these formats. */
    struct quant_pair (*rows)(const double *value, int head_dim);
    /* The matrices that n tokens of one head become, `k` and `v` included; returns how many; n tokens in one head take
     * at least the bytes of the same tokens in several heads, but for those that a head of no tokens takes. */
    int (*parts)(const double *value, int head_dim, int n, struct head_part part[HEAD_PART_MAX]);
    /* The keys or values of head g for the backend's quantise and dequantise. */
    struct quant_item (*item)(const struct packed_layer *layer, int g, enum kv_side side);
    /* Numbers that both need, made once for a variant; the caller frees them. NULL: none; if it returns NULL, memory
     * ran out. */
    float *(*constants)(const double *value, int head_dim);
    /* Of a dropping method that packs some of the rows that it keeps, and takes no other stage beside it: how many of
     * n_keep rows of each head stay whole in a layer with this share (scores.shares), the best ones; not fewer with a
     * larger share. The others are packed; they come first. */
    int (*whole)(const double *value, double share, int n_keep);
    const struct method_coder *coder;
};

struct method {
    const char *name, *summary, *source;      // source: the paper or code that it follows
    unsigned needs;                           // enum method_need
    int window;                               // last tokens whose queries it needs, unless a parameter says so
    struct method_param param[CONFIG_PARAMS]; // name NULL ends

    /* Checks that bounds cannot express, or NULL. head_dim 0: the model is not known yet. */
    int (*check)(const double *value, int head_dim, struct err *err);

    /* One of these is given; a dropping method may also pack. */
    const struct method_budget *budget;
    const struct method_drop *drop;
    const struct method_merge *merge;
    const struct method_pack *pack;
};

/* The registry, in print order, NULL-terminated. method_find: by name, in any case; NULL: unknown. method_add: adds one
 * that stays valid; false: there is no space. */
enum { METHODS_MAX = 64 };
extern const struct method *method_registry[METHODS_MAX + 1];
bool method_add(const struct method *m);
enum method_kind method_kind(const struct method *m);
const struct method *method_find(const char *name, size_t n);

#endif

/* registry.h - declares the methods for registry.c, and code that several methods share; only methods/ includes it. */
#ifndef EVP_REGISTRY_H
#define EVP_REGISTRY_H

#include "codes/row_format.h"
#include "methods/method.h"

#include <math.h>

extern const struct method method_adakv, method_knorm, method_keydiff, method_snapkv, method_pyramidkv, method_tova,
    method_h2o, method_streamingllm, method_kvzip, method_kvzap, method_impress, method_lagkv, method_random,
    method_cur, method_arkv, method_expected_attention, method_criticalkv, method_chunkkv, method_cam, method_merge_cos,
    method_kivi, method_cachegen, method_fp8, method_int8, method_int4, method_nvfp4, method_turboquant;

/* The first parameter of every dropping method. max is the largest number below 1 that a range can produce. */
#define PARAM_DROP                                                                                                     \
    {                                                                                                                  \
        .name = "drop", .alias = "compression_ratio", .min = 0, .max = 0.999999, .otherwise = (double)NAN,             \
        .budget = true, .help = "share of KV pairs removed"                                                            \
    }

#define PARAM_N_SINK                                                                                                   \
    {                                                                                                                  \
        .name = "n_sink", .min = 0, .max = 1024, .otherwise = 4, .whole = true,                                        \
        .help = "tokens always kept at the start"                                                                      \
    }

/* Pairs that a dropping method keeps of each head, unless it says otherwise. */
int keep_of_drop(double drop, int n_tokens);

/* Are a layer's keys and queries rotated? */
bool layer_rotates(const struct kv_full *full, int layer);

/* ---- window.c: attention of the context's last queries ------------------ */

/* out (L * G, T) = the mean attention to each key from the last w <= T tokens and the group's H/G query heads. Takes
 * window_bytes() from the pool, whose parameters are those of method_scores.bytes. */
int window_attention(const struct kv_full *full, int w, float *out, struct err *err) MUST_CHECK;
size_t window_bytes(const double *value, const struct kv_shape *shape, int n_tokens, int window);

/* ---- snapkv.c: parameters and scores that pyramidkv shares --------------- */

#define PARAM_WINDOW                                                                                                   \
    {                                                                                                                  \
        .name = "window", .min = 1, .max = 4096, .otherwise = 64, .whole = true, .window = true,                       \
        .help = "last tokens whose queries count"                                                                      \
    }
#define PARAM_KERNEL                                                                                                   \
    {                                                                                                                  \
        .name = "kernel", .min = 1, .max = 4095, .otherwise = 5, .whole = true,                                        \
        .help = "width of the average pooling over attention"                                                          \
    }
enum { SNAPKV_DROP, SNAPKV_WINDOW, SNAPKV_KERNEL, SNAPKV_PARAMS };
int snapkv_check(const double *value, int head_dim, struct err *err);
int snapkv_score(const struct kv_full *full, const double *value, float *out, struct err *err);
size_t snapkv_bytes(const double *value, const struct kv_shape *shape, int n_tokens, int window);

/* ---- kvzip.c: what kvzap shares -------------------------------------------- */

/* The first tokens, which are always kept: the chat template before the text, at least 4. */
int kvzip_first(const struct kv_full *full);

/* What so many layers keep together. */
struct config_share kvzip_share(const struct kv_shape *shape, int layers, double drop, int n_tokens);

/* ---- int4.c: what int8 shares ---------------------------------------------- */

enum { INT_GROUP };
extern const double int_groups[]; // that are allowed
#define PARAM_INT_GROUP                                                                                                \
    {                                                                                                                  \
        .name = "group", .min = 16, .max = 128, .otherwise = 64, .only = int_groups,                                   \
        .help = "numbers that share a scale"                                                                           \
    }
int int_check(const double *value, int head_dim, struct err *err);
int int_parts(const double *value, int head_dim, int bits, int n, struct head_part part[HEAD_PART_MAX]);
struct quant_item int_item(const struct packed_layer *layer, int bits, int g, enum kv_side side);

#endif

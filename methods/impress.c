/* impress - keeps all rows, and reads those chunks of them to answer that hold an important token.
 *
 * With p = probe heads, the first kv heads of a layer (all, where there are fewer), and sum[h][t] the attention that
 * key t of head h gets from all tokens and its query heads, as in h2o.c:
 *     importance[t] = sum over the probe heads of sum[h][t]
 * Of T tokens the ceil(T * load) most important ones count, in double arithmetic; ties go to the lower position.
 *     reorder=no     chunk c has the tokens c * chunk .. c * chunk + chunk - 1
 *     reorder=yes    the same of the tokens in the order of their importance, so that important ones share chunks; each
 *                    layer then has a table of that order, I32 per token
 * The last chunk is the rest. Every chunk with a token that counts is read, for all heads of the layer, and answers are
 * computed over all rows of these chunks. load=1 reads all.
 *
 * Bytes per layer of G heads: T * G * 4K, 4G of lengths and with reorder 4T are kept; read are n * G * 4K of the n rows
 * in chunks that are read, the keys of the probe heads in the others, (T - n) * p * 2K, the lengths and the order.
 *
 * Tensors beside `k` and `v`, which are the rows that are read: k_rest and v_rest, the others, head after head; with
 * reorder `order`, the tokens from the most important on.
 *
 * Source: Chen et al., "IMPRESS: An Importance-Informed Multi-Tier Prefix KV Storage System for Large Language Model
 * Inference" (FAST 2025), as EvicPress describes the baseline. The authors choose important tokens for each request, by
 * the probe heads, and load a layer whole where these disagree; here the context's own attention chooses, once.
 */
#include "methods/head_work.h"
#include "methods/registry.h"

#include "codes/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOAD, PROBE, CHUNK, REORDER };
enum { REORDER_NO, REORDER_YES };

/* ---- scores ------------------------------------------------------------- */

static int n_probes(const double *value, const struct kv_shape *shape)
{
    return value[PROBE] < shape->n_kv_heads ? (int)value[PROBE] : shape->n_kv_heads;
}

struct token {
    double importance;
    int t;
};

static int compare_tokens(const void *a, const void *b)
{
    const struct token *x = a, *y = b;

    return x->importance > y->importance ? -1 : x->importance < y->importance ? 1 : x->t - y->t;
}

/* Gives what is read the highest scores, with reorder in the order of importance; returns how many tokens are read. */
static int score_tokens(const double *value, const struct token *token, int T, float *score)
{
    int chunk = (int)value[CHUNK], important = (int)ceil(T * value[LOAD]), n = 0;

    if (value[REORDER] == REORDER_YES) {
        for (int i = 0; i < T; i++)
            score[token[i].t] = (float)(T - i);
        n = (important + chunk - 1) / chunk * chunk;
        return n < T ? n : T;
    }
    memset(score, 0, (size_t)T * sizeof(*score));
    for (int i = 0; i < important; i++) {
        int first = token[i].t / chunk * chunk, end = T - first < chunk ? T : first + chunk;
        if (score[first] != 0)
            continue;
        for (int t = first; t < end; t++)
            score[t] = 1;
        n += end - first;
    }
    return n;
}

/* One layer: sums (G, T) become scores. */
static int score_layer(const struct kv_full *full, const double *value, float *sums, double *share, struct err *err)
{
    size_t T = (size_t)full->n_tokens;
    struct token *token = calloc(T, sizeof(*token));

    if (!token)
        return err_nomem(err);
    for (size_t t = 0; t < T; t++) {
        token[t].t = (int)t;
        for (size_t g = 0; g < (size_t)n_probes(value, &full->shape); g++)
            token[t].importance += (double)sums[g * T + t];
    }
    qsort(token, T, sizeof(*token), compare_tokens);
    *share = (double)score_tokens(value, token, full->n_tokens, sums) / full->n_tokens;
    for (int g = 1; g < full->shape.n_kv_heads; g++)
        memcpy(sums + (size_t)g * T, sums, T * sizeof(*sums));
    free(token);
    return 0;
}

static int score_shares(const struct kv_full *full, const double *value, float *score, double *share, struct err *err)
{
    struct backend *be = full->backend;
    size_t n = (size_t)full->shape.n_kv_heads * (size_t)full->n_tokens, bytes = n * sizeof(float);
    float *host = malloc(bytes);
    int code = host ? 0 : err_nomem(err);

    for (size_t l = 0; l < (size_t)full->shape.n_layers && !code; l++) {
        code = be->read(be, host, full->column_sums + l * n, bytes, err);
        if (!code)
            code = score_layer(full, value, host, &share[l], err);
        if (!code)
            be->write(be, score + l * n, host, bytes);
    }
    free(host);
    return code;
}

/* ---- tensors ------------------------------------------------------------ */

static int64_t n_rest(const struct kv_shape *shape, const struct layer_lengths *lengths)
{
    int64_t n = (int64_t)shape->n_kv_heads * lengths->n_tokens;

    for (int g = 0; g < shape->n_kv_heads; g++)
        n -= lengths->n[g];
    return n;
}

static int layer_parts(const double *value, const struct kv_shape *shape, const struct layer_lengths *lengths,
                       struct packed_part part[PART_MAX])
{
    int64_t rows = n_rest(shape, lengths), K = shape->head_dim;

    part[0] = (struct packed_part){ "k_rest", DTYPE_BF16, 2, { rows, K }, NULL, false };
    part[1] = (struct packed_part){ "v_rest", DTYPE_BF16, 2, { rows, K }, NULL, false };
    part[2] = (struct packed_part){ "order", DTYPE_I32, 1, { lengths->n_tokens }, NULL, false };
    return value[REORDER] == REORDER_YES ? 3 : 2;
}

static int64_t unread(const double *value, const struct kv_shape *shape, const struct layer_lengths *lengths)
{
    int64_t row = (int64_t)shape->head_dim * 2, bytes = 2 * n_rest(shape, lengths) * row;

    for (int g = 0; g < n_probes(value, shape); g++)
        bytes -= (lengths->n_tokens - lengths->n[g]) * row;
    return bytes;
}

/* Copies the rows of a head that are not among the n of `kept`, ascending positions; returns how many. */
static size_t copy_rest(uint16_t *to, const float *from, const struct stored_layer *layer, const int32_t *kept)
{
    size_t K = (size_t)layer->full->shape.head_dim, rows = 0;

    for (int t = 0, taken = 0; t < layer->full->n_tokens; t++) {
        if (taken < layer->n && kept[taken] == t) {
            taken++;
            continue;
        }
        for (size_t c = 0; c < K; c++)
            to[rows * K + c] = bf16_from_f32(from[(size_t)t * K + c]);
        rows++;
    }
    return rows;
}

static int store_rest(const struct stored_layer *layer, struct err *err)
{
    const struct kv_full *full = layer->full;
    const size_t G = (size_t)full->shape.n_kv_heads, K = (size_t)full->shape.head_dim, n = (size_t)full->n_tokens * K;
    float *rows = malloc(n * sizeof(*rows));
    uint16_t *k = layer->part[0].at, *v = layer->part[1].at;
    int code = rows ? 0 : err_nomem(err);

    for (size_t g = 0; g < G && !code && layer->n < full->n_tokens; g++) {
        const struct kv_rows *head = &full->rows[(size_t)layer->number * G + g];
        const int32_t *kept = layer->kept + g * (size_t)layer->n;
        code = read_as_f32(full->backend, rows, head->k, n, err);
        if (!code)
            k += copy_rest(k, rows, layer, kept) * K;
        if (!code)
            code = read_as_f32(full->backend, rows, head->v, n, err);
        if (!code)
            v += copy_rest(v, rows, layer, kept) * K;
    }
    free(rows);
    return code;
}

static int store(const struct stored_layer *layer, const double *value, struct err *err)
{
    int T = layer->full->n_tokens;

    if (store_rest(layer, err))
        return err->code;
    int32_t *order = value[REORDER] == REORDER_YES ? layer->part[2].at : NULL;
    for (int t = 0; order && t < T; t++)
        order[T - (int)layer->score[t]] = t;
    return 0;
}

static const char *const reorders[] = { [REORDER_NO] = "no", [REORDER_YES] = "yes", NULL };

static const struct method_stored stored = { .parts = layer_parts, .store = store, .unread = unread };

const struct method method_impress = {
    .name = "impress",
    .summary = "keeps all, and reads chunks with important tokens",
    .source = "Chen et al. 2025 (IMPRESS, FAST 2025), as EvicPress' baseline",
    .needs = NEED_COLUMN_SUMS,
    .param = { { .name = "load",
                 .min = 0.000001,
                 .max = 1,
                 .otherwise = (double)NAN,
                 .help = "share of tokens whose chunks are read" },
               { .name = "probe",
                 .min = 1,
                 .max = 4096,
                 .otherwise = 3,
                 .whole = true,
                 .help = "kv heads of each layer whose attention says which tokens are important" },
               { .name = "chunk", .min = 1, .max = 4096, .otherwise = 64, .whole = true, .help = "tokens of a chunk" },
               { .name = "reorder",
                 .otherwise = REORDER_NO,
                 .words = reorders,
                 .help = "put important tokens together" } },
    .drop = &(const struct method_drop){ .scores = { .shares = score_shares }, .stored = &stored },
};

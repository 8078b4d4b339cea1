/* kvzip - keeps what the model reads when it repeats the context, in as many pairs as all heads of all layers share.
 *
 * The text is divided into chunks of 2,048 tokens. After the prefill the model is asked to repeat one after the other,
 * and reads the request and the chunk again, with the uncompressed cache before them (engine/transformer/repeat.c):
 *
 *     score[h][t] = max over tokens i of the block and the H/G query heads of the group of A[i][t]
 *
 * for t in the chunk; the block is "\n\nRepeat the previous context exactly.", after the first chunk "\n\nRepeat the
 * part of the previous context exactly, starting with" and the 8 tokens before the chunk; then the end of the model's
 * own chat template, and the chunk. A[i] is the softmax of token i over the first 4 keys of the cache, the chunk's keys
 * and the block's up to i. compress_s includes the time for that, twice to three times a prefill's; a context is
 * repeated once for all configs.
 *
 * Of N pairs (int)(N * drop) are dropped, those with the lowest scores: N are all pairs, with over=layer those of one
 * layer, and equal scores stay in lower layers, heads and positions. No head keeps a least number, so one may keep
 * none.
 *
 * prefix=protect gives the tokens of the chat template before the text, at least 4 tokens, the highest score, as the
 * authors' code does, but counts them among the N. prefix=kvpress is kvpress' KVzipPress: 4 tokens have the highest
 * score; the rest of the template, which is in no chunk, has 0 and is dropped first.
 *
 * Differences from both: kvpress masks dropped pairs, here they are gone. The authors' chunks have 2,000 tokens and
 * their ratio is what is kept. KVzip+ (weights of norms) and scores of heads alone are not here.
 *
 * Source: Kim et al., "KVzip: Query-Agnostic KV Cache Compression with Context Reconstruction" (arXiv 2505.23416); like
 * kvpress' KVzipPress.
 */
#include "methods/registry.h"

#include <assert.h>
#include <stdlib.h>

enum { DROP, PREFIX, OVER };
enum { PREFIX_PROTECT };
enum { OVER_ALL };
enum { SINK = 4 };

static const char *const prefixes[] = { "protect", "kvpress", NULL }, *const overs[] = { "all", "layer", NULL };

int kvzip_first(const struct kv_full *full)
{
    int n = full->n_head > SINK ? full->n_head : SINK;

    return n < full->n_tokens ? n : full->n_tokens;
}

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    struct backend *be = full->backend;
    int T = full->n_tokens, n_heads = full->shape.n_layers * full->shape.n_kv_heads;
    int n = value[PREFIX] == PREFIX_PROTECT ? kvzip_first(full) : SINK < T ? SINK : T;
    size_t row = (size_t)T * sizeof(float);
    float *highest = malloc(row);

    assert(full->repeat_max);
    if (!highest)
        return err_nomem(err);
    for (int t = 0; t < T; t++)
        highest[t] = 2; // attention is at most 1
    be->copy(be, out, full->repeat_max, (size_t)n_heads * row);
    be->repeat(be, out, row, n_heads, highest, (size_t)n * sizeof(float));
    free(highest);
    return 0;
}

struct config_share kvzip_share(const struct kv_shape *shape, int layers, double drop, int n_tokens)
{
    int64_t pairs = (int64_t)layers * shape->n_kv_heads * n_tokens;

    return (struct config_share){ .layers = layers, .pairs = pairs - (int64_t)((double)pairs * drop) };
}

static struct config_share share(const double *value, const struct kv_shape *shape, int n_tokens)
{
    return kvzip_share(shape, value[OVER] == OVER_ALL ? shape->n_layers : 1, value[DROP], n_tokens);
}

const struct method method_kvzip = {
    .name = "kvzip",
    .summary = "keeps what the model reads when it repeats the context",
    .source = "Kim et al. 2025 (arXiv 2505.23416), kvpress KVzipPress",
    .needs = NEED_REPEAT,
    .param = { PARAM_DROP,
               { .name = "prefix",
                 .otherwise = PREFIX_PROTECT,
                 .words = prefixes,
                 .help = "the chat template before the text: kept, or as in kvpress" },
               { .name = "over",
                 .otherwise = OVER_ALL,
                 .words = overs,
                 .budget = true,
                 .help = "the pairs that are compared: of all layers, or of each" } },
    .drop = &(const struct method_drop){ .scores = { .all = score }, .share = share },
};

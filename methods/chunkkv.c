/* chunkkv - keeps whole chunks of neighbouring tokens, the same in all heads of a layer, so that phrases stay together.
 *
 * Used in front of a dropping method: chunkkv+snapkv:drop=0.5. With s its scores, chunk c the tokens c * length .. c *
 * length + length - 1, and the last chunk the rest, which may be shorter:
 *     score[c] = sum over the heads of the layer of the mean of s[h][t] over the tokens t of the chunk
 * Of n chunks each layer keeps the best (int)(n * (1 - drop)), at least 1; ties go to the lower chunk. How many rows
 * that are depends on whether the last chunk is among them, so each layer stores its lengths. A context shorter than a
 * chunk is left to the dropping method. pyramidkv's budgets are not used: all layers keep as many chunks.
 *
 * Scores of different heads are added: see adakv.c. snapkv and tova score the last tokens above all others, here and in
 * kvpress, but not by the same numbers; a chunk with any of them is kept.
 *
 * Source: Liu et al., "ChunkKV: Semantic-Preserving KV Cache Compression for Efficient Long-Context LLM Inference"
 * (arXiv 2502.00299), without its sharing of indices between layers; like kvpress' ChunkKVPress.
 */
#include "methods/registry.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH };

static int n_chunks(int length, int n_tokens)
{
    return (n_tokens + length - 1) / length;
}

static int most(const double *value, double drop, int n_tokens)
{
    int length = (int)value[LENGTH];

    if (n_tokens < length)
        return keep_of_drop(drop, n_tokens);
    int n = keep_of_drop(drop, n_chunks(length, n_tokens));
    return n * length < n_tokens ? n * length : n_tokens;
}

struct chunk {
    double score;
    int first, n; // tokens
};

static int compare_chunks(const void *a, const void *b)
{
    const struct chunk *x = a, *y = b;

    return x->score > y->score ? -1 : x->score < y->score ? 1 : x->first - y->first;
}

static void score_chunks(struct chunk *chunk, int length, const struct layer_scores *layer)
{
    int T = layer->full->n_tokens, G = layer->full->shape.n_kv_heads;

    for (int c = 0; c < n_chunks(length, T); c++) {
        int first = c * length, n = T - first < length ? T - first : length;
        chunk[c] = (struct chunk){ .first = first, .n = n };
        for (int g = 0; g < G; g++)
            for (int t = first; t < first + n; t++)
                chunk[c].score += (double)layer->score[(size_t)g * (size_t)T + (size_t)t] / n;
    }
}

static int rescore(const struct layer_scores *layer, const double *value, struct err *err)
{
    int T = layer->full->n_tokens, G = layer->full->shape.n_kv_heads, length = (int)value[LENGTH];
    int n = n_chunks(length, T), kept = 0;

    if (T < length)
        return 0;
    struct chunk *chunk = calloc((size_t)n, sizeof(*chunk));
    if (!chunk)
        return err_nomem(err);
    score_chunks(chunk, length, layer);
    qsort(chunk, (size_t)n, sizeof(*chunk), compare_chunks);
    memset(layer->score, 0, (size_t)G * (size_t)T * sizeof(*layer->score));
    for (int c = 0; c < keep_of_drop(layer->drop->value[0], n); c++) {
        kept += chunk[c].n;
        for (int g = 0; g < G; g++)
            for (int t = chunk[c].first; t < chunk[c].first + chunk[c].n; t++)
                layer->score[(size_t)g * (size_t)T + (size_t)t] = 1;
    }
    for (int g = 0; g < G; g++)
        layer->length[g] = kept;
    free(chunk);
    return 0;
}

const struct method method_chunkkv = {
    .name = "chunkkv",
    .summary = "keeps whole chunks of tokens",
    .source = "Liu et al. 2025 (arXiv 2502.00299), kvpress ChunkKVPress",
    .param = { { .name = "length",
                 .min = 1,
                 .max = 4096,
                 .otherwise = 20,
                 .whole = true,
                 .budget = true,
                 .help = "tokens of a chunk" } },
    .budget = &(const struct method_budget){ .rescore = rescore, .most = most },
};

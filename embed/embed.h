/* embed.h - all-MiniLM-L6-v2: texts to unit vectors, whose dot product is the similarity of two answers.
 *
 * BERT, 6 layers, 384 wide; WordPiece, at most 256 tokens with [CLS] and [SEP]; mean over all tokens; L2-normalised.
 * Source: sentence-transformers/all-MiniLM-L6-v2 (modules.json: Transformer, Pooling mean, Normalize).
 */
#ifndef EVP_EMBED_H
#define EVP_EMBED_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct backend;
struct embedder;

/* dir: config.json, model.safetensors, vocab.txt or tokenizer.json. The backend must outlive it. */
struct embedder *embedder_open(const char *dir, struct backend *backend, struct err *err);
void embedder_close(struct embedder *e);
int embedder_width(const struct embedder *e); // 384
int embedder_digest(const struct embedder *e, char hex[65], struct err *err) MUST_CHECK;

/* vector[i * width ..] of text[i]; ragged batches, sorted by length inside; equal texts are computed once. */
int embedder_run(struct embedder *e, const char *const *text, int n, float *vector,
                 void (*progress)(void *arg, int done), void *arg, struct err *err) MUST_CHECK;

float embed_cosine(const float *a, const float *b, int width);

#endif

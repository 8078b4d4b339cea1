/* embed.h - all-MiniLM-L6-v2: texts to unit vectors, whose dot product is the similarity of two answers.
 *
 * BERT, 6 layers, 384 wide; WordPiece, at most 256 tokens with [CLS] and [SEP]; mean over all tokens; L2-normalised.
 * Source: sentence-transformers/all-MiniLM-L6-v2 (modules.json: Transformer, Pooling mean, Normalize).
 *
 *     struct backend *be = backend_open("cpu", 0, &err);
 *     struct embedder *e = embedder_open(dir, be, &err);
 *     float *vector = malloc((size_t)n * embedder_width(e) * sizeof(float));
 *     embedder_run(e, text, n, vector, NULL, NULL, &err);
 *     embed_cosine(vector, vector + embedder_width(e), embedder_width(e));
 */
#ifndef EVP_EMBED_H
#define EVP_EMBED_H

#include "base/digest.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct backend;
struct embedder;

enum { EMBED_TOKENS = 256 }; // what the model was trained with; the rest of a longer text is not looked at

/* dir: config.json, model.safetensors, vocab.txt or tokenizer.json. The backend must outlive it. NULL: *err says what
 * is wrong with which file. */
struct embedder *embedder_open(const char *dir, struct backend *backend, struct err *err);
void embedder_close(struct embedder *e); // NULL is fine

int embedder_width(const struct embedder *e); // 384

/* SHA-256 over the bytes of the weights' file, then of the vocabulary's. */
int embedder_digest(const struct embedder *e, char hex[DIGEST_HEX], struct err *err) MUST_CHECK;

/* vector[i * width ..] of text[i], an empty text too; ragged batches, sorted by length inside; equal texts are computed
 * once. progress (may be NULL) hears how many of the n texts are done. One run at a time. */
int embedder_run(struct embedder *e, const char *const *text, int n, float *vector /* (n, width) */,
                 void (*progress)(void *arg, int done), void *arg, struct err *err) MUST_CHECK;

/* The dot product of two unit vectors, within -1 .. 1. */
float embed_cosine(const float *a, const float *b, int width);

#endif

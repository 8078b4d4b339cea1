/* embed.h - all-MiniLM-L6-v2: texts to unit vectors. The dot product of two vectors is the similarity of two answers.
 *
 * BERT, 6 layers, 384 wide; WordPiece, at most 256 tokens with [CLS] and [SEP]; mean over all tokens; L2-normalised.
 * Source: sentence-transformers/all-MiniLM-L6-v2 (modules.json: Transformer, Pooling mean, Normalize).
 *
 *     struct backend *be = backend_open(&(struct backend_options){ .name = "cpu" }, &err);
 *     struct embedder *e = embedder_open(dir, be, &err);
 *     float *vector = malloc((size_t)n * embedder_width(e) * sizeof(float));
 *     embedder_run(e, &(struct embed_texts){ text, n }, vector, NULL, &err);
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

enum { EMBED_MAX_TOKENS = 256 }; // as in training, [CLS] and [SEP] included; longer texts are cut

/* dir: config.json, model.safetensors, vocab.txt or tokenizer.json. The backend must outlive the embedder. NULL: *err
 * says what is wrong with which file. */
struct embedder *embedder_open(const char *dir, struct backend *backend, struct err *err);
void embedder_close(struct embedder *e); // NULL is fine

int embedder_width(const struct embedder *e); // 384

/* SHA-256 over the bytes of the weights' file, then of the vocabulary's. */
int embedder_digest(const struct embedder *e, char hex[DIGEST_HEX], struct err *err) MUST_CHECK;

struct embed_texts {
    const char *const *at; // (n); a text may be empty
    int n;
};

/* Called after each batch: `done` texts have their vectors. */
struct embed_progress {
    void (*report)(void *arg, int done);
    void *arg;
};

/* Fills row i of vector (n, width) from text i. Equal texts are computed once; a batch has texts of similar length.
 * progress may be NULL. Not thread-safe. */
int embedder_run(struct embedder *e, const struct embed_texts *texts, float *vector,
                 const struct embed_progress *progress, struct err *err) MUST_CHECK;

/* The dot product of two unit vectors, within -1 .. 1. */
float embed_cosine(const float *a, const float *b, int width);

#endif

/* payload.h - one variant of one context's KV cache as a file: a safetensors file that any reader of the format opens.
 *
 *     layers.N.k, layers.N.v      BF16 [G, n, K]   rows kept in full: all of them, or a quantiser's most recent ones
 *     layers.N.positions          I32  [G, n]      ascending positions of the kept rows in the context
 *     layers.N.k_codes ...        what the quantiser needs, as its methods/NAME.c says
 *
 * positions are there when tokens were dropped and rows are stored in full; nothing that decodes needs them, as keys
 * carry their rotary embedding. __metadata__ (all strings): evp "payload", version "1", config, model_digest,
 * token_digest, n_tokens (the position of the next token), checksums (JSON: tensor name -> XXH3-64 hex).
 *
 * The tensors but positions take exactly the bytes the table counts for the cell; names, shapes, checksums and
 * positions add at most 2 % and 32 KiB.
 */
#ifndef EVP_PAYLOAD_H
#define EVP_PAYLOAD_H

#include "base/digest.h"
#include "base/err.h"
#include "base/safetensors.h"
#include "kernels/kv.h"
#include "methods/method.h"

#include <stdint.h>

enum { PAYLOAD_VERSION = 1 };

/* Which context of which model a payload belongs to. */
struct payload_key {
    const char *model_digest, *token_digest;
};

/* Writes a variant made with VARIANT_PAYLOAD; the file appears whole or not at all. *bytes (may be NULL): its size. */
int payload_write(const char *path, const struct variant *v, const struct payload_key *key, uint64_t *bytes,
                  struct err *err) MUST_CHECK;

/* A payload opened for reading; names and data are borrowed from it. */
struct payload {
    struct safetensors st;
    const char *model_digest, *token_digest;
    struct config config;
    struct kv_shape shape; // n_heads and dtype are not known from a payload
    int n_tokens;          // the position of the next token
    int n;                 // rows each head keeps
    int64_t bytes;         // as the table counts them
};

enum payload_check {
    PAYLOAD_HEADER, // metadata, names, types and shapes against what the config makes of n_tokens
    PAYLOAD_WHOLE,  // and every tensor's checksum and the order of positions, which reads all of it
};

/* ERR_FORMAT says what is wrong with the file. On failure nothing is left to close. */
int payload_open(struct payload *p, const char *path, enum payload_check check, struct err *err) MUST_CHECK;

/* The same from n bytes of memory, which are borrowed. */
int payload_parse(struct payload *p, const void *bytes, size_t n, enum payload_check check, struct err *err) MUST_CHECK;
void payload_close(struct payload *p); // zeroed is fine

#endif

/* payload.h - the container of a payload: one variant of one context's KV cache as a safetensors file.
 *
 *     tokens            I32 [n_tokens], the ids of the context
 *     layers.N.KIND     the tensors of layer N; variants/packed_payload.h lists them for each config
 *     __metadata__      all strings: evp "payload", version "2", config, model_digest, token_digest, n_tokens (the
 *                       position of the next token), checksums (JSON: tensor name -> XXH3-64 hex), head_checksums
 *                       (JSON: tensor name -> those of its heads, one after another), and the known ones of
 *                       producer, model_name, cache, lengths, errors (variants/payload_cache.h)
 *
 * Any reader of safetensors opens the file. These functions need no compression method: they identify the cache and
 * check that its bytes are whole. They do not check which layer tensors a config has, nor their shapes.
 */
#ifndef EVP_PAYLOAD_H
#define EVP_PAYLOAD_H

#include "base/digest.h"
#include "base/err.h"
#include "base/safetensors.h"

#include <stddef.h>

enum { PAYLOAD_VERSION = 2 };

/* Where a payload comes from; not needed to read it. NULL: not known. */
struct payload_origin {
    const char *producer, *model_name;
    const char *cache, *lengths, *errors; // JSON
};

/* A payload opened for reading; texts and tensors are borrowed from it. */
struct payload {
    struct safetensors st;
    int64_t version;
    const char *config; // as in the file; not parsed
    const char *model_digest, *token_digest;
    int n_tokens; // the position of the next token
    const struct st_tensor *tokens;
    struct payload_origin origin; // as in the file; not parsed
};

/* Opens the container and checks the metadata and the shape of the tokens, without reading the tensors. ERR_FORMAT: the
 * file is malformed. On failure nothing is left to close. */
int payload_open(struct payload *p, const char *path, struct err *err) MUST_CHECK;

/* The same from n bytes of memory, which are borrowed. */
int payload_parse(struct payload *p, const void *bytes, size_t n, struct err *err) MUST_CHECK;

/* The same from the first n bytes of a file of `size` bytes; they must include the header. Tensors get offsets, not
 * data. */
int payload_parse_header(struct payload *p, const void *bytes, size_t n, uint64_t size, struct err *err) MUST_CHECK;
void payload_close(struct payload *p); // zeroed is fine

/* Reads the whole file: compares every tensor with its checksum, and the tokens with their digest. ERR_FORMAT names the
 * first difference. */
int payload_check_sums(const struct payload *p, struct err *err) MUST_CHECK;

/* payload_sums() returns the checksums in the metadata, to be freed with json_free(), or NULL if there are none;
 * payload_sum() one tensor's: hex, borrowed from *sums, or NULL. */
struct json *payload_sums(const struct payload *p, struct err *err);
const char *payload_sum(const struct json *sums, const char *tensor);

/* The checksums of single heads, so that a reader of some heads need not read the others: payload_head_sums() as
 * payload_sums(), NULL without an error if there are none; payload_head_sum() a member of it as 16 hex digits for each
 * of the tensor's dim[0] heads, or NULL. */
struct json *payload_head_sums(const struct payload *p);
const char *payload_head_sum(const struct json *member, const struct st_tensor *t);

/* Bytes as tables and tiers count them: all tensors except tokens and positions. */
int64_t payload_bytes(const struct payload *p);

/* The tensor of a context's n ids. */
struct st_tensor payload_tokens(int n);

/* The header of a new payload. payload_tokens() must be among the tensors. */
struct payload_made {
    const char *config, *model_digest, *token_digest;
    int n_tokens;
    const struct st_tensor *tensor; // (n); only name, type and shape are used
    char (*checksum)[XXH3_HEX];     // (n)
    int n;
    struct payload_origin origin;
    char *const *head_checksum; // (n) of each head, one after another; NULL: none, of a tensor or of all
};

/* Writes the header; the tensors' bytes follow in their order. The values of the checksums do not change the header's
 * length, so a second header can overwrite the first. */
int payload_write_header(struct file_out *out, const struct payload_made *made, struct err *err) MUST_CHECK;

#endif

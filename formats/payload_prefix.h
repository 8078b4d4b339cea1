/* payload_prefix.h - the first tokens of a payload as a payload of their own.
 *
 * In a causal model a token's KV pair depends only on the tokens up to it. So the first rows of an uncompressed cache
 * (config `none`) are the cache of the first tokens. Compression methods also look at later tokens, so payloads of
 * other configs have no parts.
 *
 * All tensors of an uncompressed payload have one row per token. The file of a part holds the first rows of each
 * tensor, and a header of the same length as the whole payload's.
 */
#ifndef EVP_PAYLOAD_PREFIX_H
#define EVP_PAYLOAD_PREFIX_H

#include "base/buf.h"
#include "base/digest.h"
#include "formats/payload.h"

#include <stdbool.h>

/* Can parts of a payload of this config be used? */
bool config_has_parts(const char *config);

/* A part whose tensors have been read. */
struct payload_part {
    int n_tokens; // below the payload's
    const char *token_digest;
    char (*checksum)[XXH3_HEX]; // (st.n) of its tensors
};

/* Checks that a payload has parts: its tensors must be the tokens and, per head, matrices with one row per token.
 * ERR_FORMAT says why it has none. */
int payload_check_parts(const struct payload *p, struct err *err) MUST_CHECK;

/* Bytes of the header of a payload file of `size` bytes. The header of a part has the same length. */
uint64_t payload_header_bytes(const struct payload *p, uint64_t size);

/* Adds the header of a part, padded with blanks; the caller adds the first rows of every tensor, in the payload's
 * order. ERR_FORMAT: it does not fit, because another program wrote the payload's header more densely. */
int payload_part_header(const struct payload *p, uint64_t size, const struct payload_part *part, struct buf *header,
                        struct err *err) MUST_CHECK;

/* Bytes of a part of n tokens. The payload has `whole` tokens, its file `size` bytes and its header `header` bytes. */
static inline uint64_t payload_part_bytes(uint64_t size, uint64_t header, uint32_t whole, uint32_t n)
{
    return header + (size - header) / whole * n;
}

#endif

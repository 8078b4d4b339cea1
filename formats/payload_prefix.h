/* payload_prefix.h - the first tokens of a payload as a payload of their own.
 *
 * What a model computes for a token depends on the tokens before it alone. So the first rows of a cache as it was, of
 * config `none`, are the cache of the first tokens. What other configs keep of a token, or keep it as, depends on the
 * tokens after it, too: their payloads have no parts.
 *
 * All tensors of such a payload have a row per token, so the file of a part takes its share of the tensors' bytes, and
 * as many bytes of header as the whole.
 */
#ifndef EVP_PAYLOAD_PREFIX_H
#define EVP_PAYLOAD_PREFIX_H

#include "base/buf.h"
#include "base/digest.h"
#include "formats/payload.h"

#include <stdbool.h>

/* Can parts of a payload of this config be used? */
bool config_has_parts(const char *config);

/* A part, once its tensors are read. */
struct payload_part {
    int n_tokens; // below the payload's
    const char *token_digest;
    char (*checksum)[XXH3_HEX]; // (st.n) of its tensors
};

/* Has a payload parts? Its tensors must be the tokens, and matrices of a row per token for each head. ERR_FORMAT says
 * why it has none. */
int payload_check_parts(const struct payload *p, struct err *err) MUST_CHECK;

/* Bytes of the header of a payload, whose file takes `size`. Every part's header takes as many. */
uint64_t payload_header_bytes(const struct payload *p, uint64_t size);

/* Adds the header of a part, filled up with blanks; the first rows of every tensor follow, in the payload's order.
 * ERR_FORMAT: it does not fit, as with a header that was written in another way. */
int payload_part_header(const struct payload *p, uint64_t size, const struct payload_part *part, struct buf *header,
                        struct err *err) MUST_CHECK;

/* Bytes of a part of n tokens of a payload of `whole` tokens, whose file takes `size` and its header `header`. */
static inline uint64_t payload_part_bytes(uint64_t size, uint64_t header, uint32_t whole, uint32_t n)
{
    return header + (size - header) / whole * n;
}

#endif

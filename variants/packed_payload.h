/* packed_payload.h - variants as payload files (formats/payload.h): the tensors of a config, writing a variant, and the
 * check that a file has the tensors that its config makes from its tokens.
 *
 *     tokens                      I32  [T]         the ids of the context, once for all layers
 *     layers.N.k, layers.N.v      BF16 [G, n, K]   rows kept in full: all of them, or a quantiser's most recent ones,
 *                                                  or arkv's whole ones
 *     layers.N.positions          I32  [G, n]      ascending positions of the kept rows in the context
 *     layers.N.k_codes ...        what the quantiser needs, or what impress keeps and does not read, as its
 *                                 methods/NAME.c says
 *
 * Layers with a window have only k and v, whatever the config: the rows of their last tokens. Their positions need no
 * tensor: row i of n has position T - n + i. `cache` in the metadata says which layers these are.
 *
 * Where the heads of a layer differ in length, every tensor has head after head: k and v are [sum of rows, K], the
 * others have one dimension, and layers.N.lengths, I32 [G], has the tokens of each head.
 *
 * A payload has positions when tokens were dropped and rows are stored in full. Decoding does not need them, as keys
 * carry their rotary embedding.
 *
 * All tensors except tokens and positions take exactly the bytes that the table counts for the cell. Names, shapes,
 * checksums and positions add at most 2 % and 64 KiB, tokens 4 bytes each.
 */
#ifndef EVP_PACKED_PAYLOAD_H
#define EVP_PACKED_PAYLOAD_H

#include "base/err.h"
#include "formats/payload.h"
#include "kernels/kv.h"
#include "methods/method.h"
#include "variants/payload_cache.h"
#include "variants/variant.h"

#include <stdint.h>

/* ---- layout ---- */

enum { LAYOUT_MAX = PART_MAX + 1, TENSOR_NAME = 48 }; // "layers." a number "." a packed_part's name

/* The tensors of one layer, by its place in caches: the config's, then positions where they are stored. Returns how
 * many. */
int packed_payload_layout(const struct config *config, const struct kv_shape *shape,
                          const struct layer_lengths *lengths, struct packed_part part[LAYOUT_MAX]);

/* One tensor of a layer of the model as the container describes it; `name` gets the text that .name points to. */
struct st_tensor packed_payload_tensor(int number, const struct packed_part *part, char name[TENSOR_NAME]);

/* ---- writing ---- */

/* The model and the context that a payload belongs to. */
struct payload_key {
    const char *model_digest, *token_digest;
    const int32_t *ids;                // (n_tokens) of the variant's context; token_digest is their digest
    const char *producer;              // NULL: not recorded
    const struct payload_model *model; // NULL: the payload does not describe the cache; needed with windows
    const double *errors;              // (L, 2) of variant_errors(); NULL: not recorded
};

/* Writes a variant made with VARIANT_PAYLOAD; the file appears whole or not at all. *bytes (may be NULL): its size. */
int packed_payload_write(const char *path, const struct variant *v, const struct payload_key *key, uint64_t *bytes,
                         struct err *err) MUST_CHECK;

/* ---- reading ---- */

struct packed_payload {
    struct payload file; // the tensors, and the context they belong to
    struct config config;
    struct kv_shape shape;      // n_heads and dtype as in `cache`
    struct payload_cache cache; // the payload's description of the cache, if file.origin.cache
    int64_t bytes;              // as the table counts them
};
enum { PAYLOAD_HEADS_MAX = 1 << 12 }; // the most kv heads of an open payload

/* n (G) = the tokens of each head of a layer, by its place in caches. */
void packed_payload_lengths(const struct packed_payload *p, int layer, int *n);

/* Rows of each head of a layer that stay whole, under a method that packs the others; 0: there is none. */
int packed_payload_whole(const struct packed_payload *p, int layer);

enum payload_check {
    PAYLOAD_HEADER, // metadata, lengths, and that names, types and shapes follow from the config
    PAYLOAD_WHOLE,  // also every tensor's checksum and the order of positions: reads the whole file
};

/* ERR_FORMAT says what is wrong with the file. On failure there is nothing to close. */
int packed_payload_open(struct packed_payload *p, const char *path, enum payload_check check,
                        struct err *err) MUST_CHECK;

/* The same from n bytes of memory; they are borrowed. */
int packed_payload_parse(struct packed_payload *p, const void *bytes, size_t n, enum payload_check check,
                         struct err *err) MUST_CHECK;
void packed_payload_close(struct packed_payload *p); // zeroed is fine

#endif

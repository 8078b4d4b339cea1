/* operation.h - the operation that takes a context's cache from one plan to the next. evp-plan (manifest to manifest),
 * evp-load (folders to manifest) and libevicpress (event by event) share this rule.
 *
 *     before      after                            operation
 *     nowhere     nowhere                          none
 *     nowhere     on a tier                        insert
 *     on a tier   nowhere                          evict
 *     on a tier   another cache, on any tier       recompress
 *     on a tier   the same cache, another place    move
 *     on a tier   the same cache, the same place   keep
 *
 * Caches are the same if their tokens and configs are equal, and also model and size where both sides give them. Places
 * are the same if the tiers have equal kind and uri: names and numbers of tiers may change from plan to plan.
 */
#ifndef EVP_OPERATION_H
#define EVP_OPERATION_H

#include "base/err.h"
#include "formats/tiers.h"

#include <stdbool.h>
#include <stdint.h>

enum operation { OP_NONE, OP_INSERT, OP_KEEP, OP_RECOMPRESS, OP_MOVE, OP_EVICT };
enum { N_OPERATIONS = OP_EVICT + 1 };

const char *operation_name(enum operation op);

/* Sets *op to the operation of this name. ERR_FORMAT if there is none; the message names a field 'operation'. */
int operation_parse(enum operation *op, const char *name, struct err *err) MUST_CHECK;

/* One context's cache: what it is, and where. */
struct cached {
    const char *token_digest, *config;
    const char *model_digest; // NULL: the caller knows that both sides are of one model
    int64_t bytes;            // -1: not compared
    const struct tier *tier;  // NULL: nowhere, the context is recomputed
};

/* Is it the same cache, on whatever tier? Both must be on tiers. */
bool cached_same(const struct cached *a, const struct cached *b);

enum operation operation_between(const struct cached *before, const struct cached *after);

#endif

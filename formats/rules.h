/* rules.h - constraints on the placement of some contexts: JSON Lines, header optional (base/rows.h, kind "rules").
 *
 *     {"context":"qasper/12","min_quality":0.95}     no variant with a lower quality on the train questions
 *     {"context":"qasper/12","min_facts":0.9}        no variant that keeps fewer facts of the train questions' answers
 *     {"context":"legal/3","tier":"dram"}            on that tier only; "recompute": not stored
 */
#ifndef EVP_RULES_H
#define EVP_RULES_H

#include "base/digest.h"
#include "base/err.h"
#include "base/map.h"

#include <stdint.h>

struct rule {
    double min_quality; // 0: any
    double min_facts;   // 0: any
    char tier[32];      // its name; "": any
};

/* Fills rule[map_find(ids, context)]; a later row of a context overrides the fields it gives. *unknown counts the rows
 * of contexts that `ids` lacks. */
int rules_read(struct rule *rule, const char *path, const struct map *ids, int64_t *unknown,
               struct err *err) MUST_CHECK;

/* The rules of n contexts and their ids, taken in the order order[0], order[1], ... */
struct rules_in_order {
    const struct rule *rule;
    const char *const *id;
    const int *order;
    int n;
};

/* SHA-256 of them; "": there are none. */
int rules_digest(const struct rules_in_order *rules, char hex[DIGEST_HEX], struct err *err) MUST_CHECK;

#endif

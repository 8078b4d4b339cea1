/* rules.h - what a plan must respect for single contexts: JSON Lines, header optional (base/rows.h, kind "rules").
 *
 *     {"context":"qasper/12","min_quality":0.95}     no form whose quality on the train questions is lower
 *     {"context":"legal/3","tier":"dram"}            on that tier and no other; "recompute": never stored
 */
#ifndef EVP_RULES_H
#define EVP_RULES_H

#include "base/err.h"
#include "base/map.h"

#include <stdint.h>

struct rule {
    double min_quality; // 0: any
    char tier[32];      // "": any
};

/* Fills rule[map_find(ids, context)]; of two rows for one context the later members win. *unknown counts rows of
 * contexts that `ids` does not have. */
int rules_read(struct rule *rule, const char *path, const struct map *ids, int64_t *unknown,
               struct err *err) MUST_CHECK;

#endif

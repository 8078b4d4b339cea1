/* select.h - which of the imported contexts are kept: a number per dataset, of a certain length. */
#ifndef EVP_SELECT_H
#define EVP_SELECT_H

#include "formats/context.h"

#include <stdbool.h>
#include <stdint.h>

struct selection {
    int limit;        // contexts per dataset; 0: all
    bool sampled;     // drawn at random; false: the first ones
    uint64_t seed;    // of the draw, which does not depend on the other datasets
    int64_t min, max; // tokens, inclusive

    /* Sets c->n_tokens. NULL: any length. Called for one context after the other until `limit` of them have a length
     * within min and max. */
    int (*count)(void *arg, struct context *c, struct err *err);
    void *arg;
};

/* Releases the contexts that are not kept; the others stay in their order. */
int select_contexts(struct contexts *list, const struct selection *s, struct err *err) MUST_CHECK;

#endif

/* select.h - which of the imported contexts are kept: so many per dataset, of a certain length. */
#ifndef EVP_SELECT_H
#define EVP_SELECT_H

#include "base/context.h"

#include <stdbool.h>
#include <stdint.h>

struct selection {
    int limit;        // contexts per dataset; 0: all
    bool sampled;     // drawn with `seed`; false: the first ones
    uint64_t seed;    // a dataset's draw does not depend on which others are there
    int64_t min, max; // tokens, both included

    /* Sets c->n_tokens. NULL: lengths are not looked at. Only called for what may be kept: the limit counts contexts of
     * the right length, and counting stops when it is reached. */
    int (*count)(void *arg, struct context *c, struct err *err);
    void *arg;
};

/* Releases what is not kept; the rest stays in its order. */
int select_contexts(struct contexts *list, const struct selection *s, struct err *err) MUST_CHECK;

#endif

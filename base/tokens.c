/* tokens.c - adds an id, with an error for callers to pass on. */
#include "base/tokens.h"

#include "base/array.h"

#include <stdlib.h>

int tokens_add(struct tokens *t, int32_t id, struct err *err)
{
    return ARRAY_PUSH(t, id) ? err_nomem(err) : 0;
}

void tokens_release(struct tokens *t)
{
    free(t->at);
    *t = (struct tokens){ 0 };
}

/* array.c - arrays grow to at least twice their size, so that n pushes copy at most 2n elements. */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 16 };

size_t array_grow(void *slot, size_t size, size_t want, size_t cap, size_t limit)
{
    size_t next = cap > limit / 2 ? limit : 2 * cap;
    void *at;

    if (want > limit || want > SIZE_MAX / size)
        return cap;
    if (next < FIRST_CAP)
        next = FIRST_CAP;
    if (next < want || next > SIZE_MAX / size)
        next = want;
    memcpy(&at, slot, sizeof(at)); /* a pointer to any type */
    at = realloc(at, next * size);
    if (!at)
        return cap;
    memcpy(slot, &at, sizeof(at));
    return next;
}

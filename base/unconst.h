/* unconst.h - removes const from a pointer: for libraries that take a non-const pointer but write nothing, and to free
 * memory whose owner lends it as const. The only place for that cast, so that a search finds all uses. */
#ifndef EVP_UNCONST_H
#define EVP_UNCONST_H

#include <stdint.h>

static inline void *unconst(const void *p)
{
    return (void *)(uintptr_t)p;
}

#endif

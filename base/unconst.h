/* unconst.h - takes const off a pointer: for a library function or struct that writes nothing there but does not say
 * so, and to free what its owner gave out as const. The one place for that cast, so that a search finds all uses. */
#ifndef EVP_UNCONST_H
#define EVP_UNCONST_H

#include <stdint.h>

static inline void *unconst(const void *p)
{
    return (void *)(uintptr_t)p;
}

#endif

/* heap.h - a binary heap of contexts by a key, the lowest first; ties go to the lower context. */
#ifndef EVP_HEAP_H
#define EVP_HEAP_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct heap_entry {
    double key;
    int32_t context;
};

struct heap {
    struct heap_entry *at; // at[0] is the lowest; the children of at[i] are at[2i + 1] and at[2i + 2]
    size_t n, cap;
};

/* -1 without memory. */
int heap_push(struct heap *h, struct heap_entry e) MUST_CHECK;

/* Removes the entry at[i]. */
void heap_remove(struct heap *h, size_t i);

void heap_release(struct heap *h);

#endif

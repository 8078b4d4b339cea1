/* heap.c - moves entries through a hole, which rises or sinks to the position of the new entry. */
#include "planner/heap.h"

#include "base/array.h"

#include <stdlib.h>

static int before(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->key < b->key || (a->key <= b->key && a->context < b->context);
}

/* Puts e at the hole i or above it. */
static void rise(struct heap *h, size_t i, struct heap_entry e)
{
    for (; i > 0 && before(&e, &h->at[(i - 1) / 2]); i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = e;
}

/* Puts e at the hole i or below it. */
static void sink(struct heap *h, size_t i, struct heap_entry e)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < h->n && before(&h->at[child + 1], &h->at[child]))
            child++;
        if (child >= h->n || !before(&h->at[child], &e))
            break;
        h->at[i] = h->at[child];
        i = child;
    }
    h->at[i] = e;
}

int heap_push(struct heap *h, struct heap_entry e)
{
    if (ARRAY_GROW(h, h->n + 1))
        return -1;
    rise(h, h->n++, e);
    return 0;
}

void heap_remove(struct heap *h, size_t i)
{
    struct heap_entry last = h->at[--h->n];

    if (i == h->n)
        return;
    if (i > 0 && before(&last, &h->at[(i - 1) / 2]))
        rise(h, i, last);
    else
        sink(h, i, last);
}

void heap_release(struct heap *h)
{
    free(h->at);
    *h = (struct heap){ 0 };
}

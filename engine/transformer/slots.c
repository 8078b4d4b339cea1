/* slots.c - a short sorted list of free ranges. */
#include "engine/transformer/slots.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

int slots_init(struct slots *s, int n, struct err *err)
{
    *s = (struct slots){ 0 };
    return ARRAY_PUSH(s, ((struct slot_range){ 0, n })) ? err_nomem(err) : 0;
}

void slots_release(struct slots *s)
{
    free(s->at);
    *s = (struct slots){ 0 };
}

/* Closes the gap that range i leaves in the list. */
static void drop(struct slots *s, int i)
{
    s->n--;
    memmove(&s->at[i], &s->at[i + 1], (size_t)(s->n - i) * sizeof(*s->at));
}

int slots_take(struct slots *s, int n)
{
    for (int i = 0; i < s->n; i++) {
        struct slot_range *r = &s->at[i];
        if (r->n < n)
            continue;
        int first = r->first;
        r->first += n;
        r->n -= n;
        if (r->n == 0)
            drop(s, i);
        return first;
    }
    return -1;
}

int slots_give(struct slots *s, struct slot_range range, struct err *err)
{
    int i = s->n;

    if (ARRAY_PUSH(s, range))
        return err_nomem(err);
    for (; i > 0 && s->at[i - 1].first > range.first; i--)
        s->at[i] = s->at[i - 1];
    s->at[i] = range;
    if (i + 1 < s->n && range.first + range.n == s->at[i + 1].first) {
        s->at[i].n += s->at[i + 1].n;
        drop(s, i + 1);
    }
    if (i > 0 && s->at[i - 1].first + s->at[i - 1].n == range.first) {
        s->at[i - 1].n += s->at[i].n;
        drop(s, i);
    }
    return 0;
}

/* station.c - a heap of the times when servers become free. */
#include "replay/station.h"

#include <stdlib.h>

int station_open(struct station *s, int n, struct err *err)
{
    *s = (struct station){ .free_at = calloc((size_t)n, sizeof(*s->free_at)), .n = n };
    return s->free_at ? 0 : err_nomem(err);
}

void station_close(struct station *s)
{
    free(s->free_at);
    *s = (struct station){ 0 };
}

double station_serve(struct station *s, double ready, double seconds)
{
    double *heap = s->free_at, done = (ready > heap[0] ? ready : heap[0]) + seconds;
    int at = 0;

    for (int child = 1; child < s->n; child = 2 * at + 1) {
        child += child + 1 < s->n && heap[child + 1] < heap[child];
        if (heap[child] >= done)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = done;
    return done;
}

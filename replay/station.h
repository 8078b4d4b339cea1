/* station.h - servers with one queue: who waits longest is served first, by the server that is free first.
 */
#ifndef EVP_STATION_H
#define EVP_STATION_H

#include "base/err.h"

struct station {
    double *free_at; // (n): a heap, the smallest first
    int n;
};

/* All n servers are free from time 0 on. */
int station_open(struct station *s, int n, struct err *err) MUST_CHECK;
void station_close(struct station *s); // zeroed is fine

/* Serves the next in the queue, who came at `ready` and takes `seconds`. Returns when he leaves. */
double station_serve(struct station *s, double ready, double seconds);

#endif

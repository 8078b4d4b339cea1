/* deal.c - a state for each context, and a mark for each context that a device cannot hold. */
#include "profiler/run/deal.h"

#include <stdlib.h>

enum { LOST_MAX = 2 }; // devices that a context may lose

struct dealt {
    enum { NOT_DEALT, WAITS, HAS_DEVICE } state;
    int n_lost;
    bool *unfit; // (n_devices)
};

struct deal {
    int n, n_devices;
    struct dealt *context; // (n)
    int *has;              // (n_devices): the context that a device has; -1: none
    bool *failed;          // (n_devices)
    bool *unfit;           // (n, n_devices)
};

struct deal *deal_new(const struct grid *g, int n_devices, struct err *err)
{
    struct deal *d = calloc(1, sizeof(*d));
    size_t n = (size_t)g->n_work, devices = (size_t)n_devices;

    if (d)
        *d = (struct deal){ g->n_work,
                            n_devices,
                            calloc(n + 1, sizeof(*d->context)),
                            calloc(devices, sizeof(*d->has)),
                            calloc(devices, sizeof(*d->failed)),
                            calloc(n * devices + 1, sizeof(*d->unfit)) };
    if (!d || !d->context || !d->has || !d->failed || !d->unfit) {
        deal_free(d);
        err_nomem(err);
        return NULL;
    }
    for (int i = 0; i < d->n; i++)
        d->context[i] =
            (struct dealt){ .state = g->work[i].n_open ? WAITS : NOT_DEALT, .unfit = d->unfit + (size_t)i * devices };
    for (int k = 0; k < n_devices; k++)
        d->has[k] = -1;
    return d;
}

void deal_free(struct deal *d)
{
    if (!d)
        return;
    free(d->context);
    free(d->has);
    free(d->failed);
    free(d->unfit);
    free(d);
}

void deal_unfit(struct deal *d, int device, int context)
{
    d->context[context].unfit[device] = true;
}

int deal_next(struct deal *d, int device)
{
    for (int i = 0; i < d->n; i++)
        if (d->context[i].state == WAITS && !d->context[i].unfit[device]) {
            d->context[i].state = HAS_DEVICE;
            d->has[device] = i;
            return i;
        }
    return -1;
}

void deal_done(struct deal *d, int device)
{
    d->context[d->has[device]].state = NOT_DEALT;
    d->has[device] = -1;
}

int deal_lost(struct deal *d, int device)
{
    int i = d->has[device];

    d->failed[device] = true;
    d->has[device] = -1;
    if (i < 0)
        return -1;
    bool again = ++d->context[i].n_lost < LOST_MAX;
    d->context[i].state = again ? WAITS : NOT_DEALT;
    return again ? -1 : i;
}

static bool fits_any(const struct deal *d, const struct dealt *c)
{
    for (int k = 0; k < d->n_devices; k++)
        if (!d->failed[k] && !c->unfit[k])
            return true;
    return false;
}

int deal_stranded(struct deal *d)
{
    for (int i = 0; i < d->n; i++)
        if (d->context[i].state == WAITS && !fits_any(d, &d->context[i])) {
            d->context[i].state = NOT_DEALT;
            return i;
        }
    return -1;
}

int deal_drop(struct deal *d)
{
    for (int i = 0; i < d->n; i++)
        if (d->context[i].state == WAITS) {
            d->context[i].state = NOT_DEALT;
            return i;
        }
    return -1;
}

bool deal_is_over(const struct deal *d)
{
    for (int i = 0; i < d->n; i++)
        if (d->context[i].state != NOT_DEALT)
            return false;
    return true;
}

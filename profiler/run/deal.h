/* deal.h - which device gets which context. A device takes one context after the other, so fast devices take more. When
 * a device fails, the others get its context; a context that loses its device a second time is given up.
 */
#ifndef EVP_DEAL_H
#define EVP_DEAL_H

#include "profiler/run/grid.h"

struct deal;

/* The contexts of the grid with open work, for devices 0 .. n_devices - 1. Borrows the grid. NULL with an error. */
struct deal *deal_new(const struct grid *g, int n_devices, struct err *err);
void deal_free(struct deal *d); // NULL is fine

/* The device has not enough memory for this context (its number in the grid). */
void deal_unfit(struct deal *d, int device, int context);

/* The first context that waits and fits the device, which has it from now on; -1: none. */
int deal_next(struct deal *d, int device);

/* The device is done with its context, which is not dealt again. */
void deal_done(struct deal *d, int device);

/* The device failed: it gets nothing more. Returns its context if that is given up now, otherwise -1. */
int deal_lost(struct deal *d, int device);

/* A waiting context that fits no device that still works: it is given up. -1: none. */
int deal_stranded(struct deal *d);

/* A waiting context, which is not dealt any more; -1: none. */
int deal_drop(struct deal *d);

/* Is no context waiting or with a device? */
bool deal_is_over(const struct deal *d);

#endif

/* reading.h - a tier under load: reads at the same time share its bandwidth equally (processor sharing).
 *
 * The total bandwidth depends on how many reads are in flight, as measured (formats/tiers.h, "parallel"). Every read
 * has had the same share of the work since it came, so one number says how far all are: the work that a read which
 * never ends would have received. A read ends when this number has grown by its bytes (virtual time: J. Bennett, H.
 * Zhang: WF2Q, INFOCOM 1996, with equal weights). So a read costs O(log reads in flight), whatever comes and goes
 * between.
 */
#ifndef EVP_READING_H
#define EVP_READING_H

#include "planner/heap.h"

#include <stdint.h>

struct reading {
    const double *total; // (n_total) bytes per second of 1, 2, ... reads together; constant after the last; borrowed
    int n_total;
    struct heap job;     // the ends in virtual work, of numbers
    double work;         // virtual, in bytes
    int64_t now;         // ns: when `work` was right
    double in_flight_ns; // integral of the reads in flight over time
    int64_t busy_ns;
};

/* When the next read ends, in ns; INT64_MAX: none is in flight. */
int64_t reading_next(const struct reading *r);

/* Bytes that a read which never ends would have received by `now`, not before any earlier call's. */
double reading_work(const struct reading *r, int64_t now);

/* A read of some bytes, 0 or more, begins at `now`, not before any earlier call's. */
int reading_begin(struct reading *r, int64_t now, double bytes, int32_t number, struct err *err) MUST_CHECK;

/* Ends the read that ends at reading_next() and returns its number. */
int32_t reading_end(struct reading *r);

void reading_release(struct reading *r); // zeroed is fine

#endif

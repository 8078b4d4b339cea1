/* ops.h - what a timed backend did between two moments, as JSON for tests/bench/roofline.py. */
#ifndef EVP_BENCH_OPS_H
#define EVP_BENCH_OPS_H

#include "base/json.h"
#include "kernels/timed.h"

/* All ops up to a moment. */
struct ops {
    struct op_time op[TIMED_OPS];
    int n;
};

/* timed: of kernels/timed.h; NULL: none are counted. */
struct ops ops_now(const struct backend *timed);

/* Adds an object for every op called between two moments: phase, op, calls, seconds, flop, bytes. */
void ops_put(struct json_out *w, const struct ops *from, const struct ops *to, const char *(*phase_of)(const char *op));

/* The shortest time between two readings of the clock, which is in the seconds of every call. */
double ops_clock_s(struct backend *be);

#endif

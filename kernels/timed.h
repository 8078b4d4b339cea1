/* timed.h - a backend that counts and times the ops of another one, for a table of where the time goes.
 *
 * It reads the inner backend's clock around every op, and the clock waits until the op is done. So ops do not overlap
 * with each other or with the host, and the sum of the seconds may exceed the time of an untimed run.
 */
#ifndef EVP_TIMED_H
#define EVP_TIMED_H

#include "kernels/backend.h"

#include <stdint.h>

/* All calls of one op. flop and bytes are counted as around.h says. */
struct op_time {
    const char *name;
    int64_t calls;
    double seconds, flop, bytes;
};

enum { TIMED_OPS = 40 }; // ops that a backend can have

/* A backend around `inner`, which is closed with it; NULL without memory, and then `inner` is still the caller's. */
struct backend *timed_open(struct backend *inner, struct err *err);

/* What a backend of timed_open() did so far: the ops called, the one that took longest first. Returns their number. */
int timed_list(const struct backend *timed, struct op_time out[TIMED_OPS]);

#endif

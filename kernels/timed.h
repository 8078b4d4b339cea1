/* timed.h - a backend that counts and times the ops of another backend.
 *
 * It reads the inner backend's clock before and after every op, and the clock waits until the op is done. So ops do not
 * overlap with each other or with the host, and the sum of the seconds may exceed the time of an untimed run.
 */
#ifndef EVP_TIMED_H
#define EVP_TIMED_H

#include "kernels/backend.h"

#include <stdint.h>

/* All calls of one op. around.h defines flop and bytes. */
struct op_time {
    const char *name;
    int64_t calls;
    double seconds, flop, bytes;
};

enum { TIMED_OPS = 40 }; // at least the ops of a backend

/* A backend around `inner`; closing it closes `inner` too. NULL when memory runs out; `inner` is then still the
 * caller's. */
struct backend *timed_open(struct backend *inner, struct err *err);

/* Lists the ops called so far, the longest total time first. `timed`: from timed_open(). Returns their number. */
int timed_list(const struct backend *timed, struct op_time out[TIMED_OPS]);

#endif

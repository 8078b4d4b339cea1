/* around.h - a backend that does something before and after every op of another one.
 *
 * It computes nothing: each op calls before(arg), the op of the inner backend, and after(arg, what was done).
 * weight_new and what moves numbers (write, read, copy, repeat) count as ops. The rest is passed on as it is. timed.h
 * counts and times ops with it; a test closes device memory between ops with it.
 */
#ifndef EVP_AROUND_H
#define EVP_AROUND_H

#include "kernels/backend.h"

/* One call of an op. flop: two for each multiplication and addition in a product, products alone; of attention the keys
 * that a row sees. bytes: operands read and results written, each once. */
struct op_done {
    const char *name; // of the op in struct backend, and attention's kind; a literal
    double flop, bytes;
};

struct around_hooks {
    void (*before)(void *arg);
    void (*after)(void *arg, const struct op_done *done);
    void *arg;
    void (*close)(void *arg); // when the backend is closed, after the inner one; NULL: nothing to do
};

/* A backend around `inner`, which is closed with it; NULL without memory, and then `inner` is still the caller's. */
struct backend *around_open(struct backend *inner, const struct around_hooks *hooks, struct err *err);

/* The hooks' arg of a backend of around_open(). */
void *around_arg(const struct backend *be);

#endif

/* around.h - a backend that calls hooks before and after every op of another backend.
 *
 * It computes nothing: each op calls before(arg), the op of the inner backend, and after(arg, done). weight_new and the
 * ops that move numbers (write, read, copy, repeat) count as ops. All other functions go straight to the inner backend.
 * timed.h uses it to count and time ops, a test to close device memory between ops.
 */
#ifndef EVP_AROUND_H
#define EVP_AROUND_H

#include "kernels/backend.h"

/* One call of an op. flop: two for each multiply-add of a product, 0 outside products; attention counts only keys that
 * a row sees. bytes: operands read and results written, each once. */
struct op_done {
    const char *name; // the op's name in struct backend; for attention with its kind; a literal
    double flop, bytes;
};

struct around_hooks {
    void (*before)(void *arg);
    void (*after)(void *arg, const struct op_done *done);
    void *arg;
    void (*close)(void *arg); // called after the inner backend is closed; NULL: nothing to do
};

/* A backend around `inner`; closing it closes `inner` too. NULL when memory runs out; `inner` is then still the
 * caller's. */
struct backend *around_open(struct backend *inner, const struct around_hooks *hooks, struct err *err);

/* The hooks' arg of a backend from around_open(). */
void *around_arg(const struct backend *be);

#endif

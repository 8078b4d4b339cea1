/* compare.h - what every test of an op does: run it on the reference and on another backend from the same numbers, and
 * compare: |a - b| <= abs + eps * |reference|.
 */
#ifndef EVP_COMPARE_H
#define EVP_COMPARE_H

#include "base/rng.h"
#include "kernels/backend.h"

/* Backends a test compares; opened together, with three threads so that work is split unevenly. */
struct backends {
    struct backend *reference, *cpu;
};
struct backends backends_open(void);
void backends_close(struct backends *b);

/* n numbers, about normal, from a seed of the name and n: the same for both backends. On the device; free them. */
float *numbers(struct backend *be, const char *name, size_t n);
int32_t *integers(struct backend *be, const char *name, size_t n, int below);
float *space(struct backend *be, size_t n); // all NAN: what an op forgot to write shows
/* One more float follows those of numbers() and space(), which no op may overwrite. */

struct mat mat_of(float *at, int rows, int cols);

/* All n floats of a numbers() or space() on both devices, and how far apart they may be. */
struct results {
    float *reference, *cpu;
    size_t n;
};
struct tolerance {
    double abs, eps;
};

/* Asserts that floats or integers on both devices agree; frees both. `what` names the case in the message. */
void same_floats(const struct backends *b, struct results r, struct tolerance within, const char *what);
void same_integers(const struct backends *b, int32_t *reference, int32_t *cpu, size_t n, const char *what);

/* n floats of the cpu backend, computed alone and in company: the same bits where backend.h promises it, nearly the
 * same elsewhere. */
void same_bits(const float *alone, const float *together, size_t n, const char *what);

#endif

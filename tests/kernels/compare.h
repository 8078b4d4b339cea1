/* compare.h - what every test of an op does: run it on the reference and on another backend from the same numbers, and
 * compare: |a - b| <= abs + eps * |reference|.
 *
 * A test is a function of a pair of backends, and each_pair() calls it for every line of a list: the cpu and cuda in
 * f32 and bf16, the fenced reference in both, and the reference in bf16 beside itself in f32. Device memory is made,
 * filled and read here, through alloc, write and read alone, so that a backend with a memory of its own is one more
 * line.
 */
#ifndef EVP_COMPARE_H
#define EVP_COMPARE_H

#include "base/rng.h"
#include "kernels/backend.h"

struct pair {
    const char *name; // of the backend under test, with its dtype
    struct backend *want, *got;
};

/* Opens a backend of a test's list: "cpu", "reference", "fenced", or "cuda". NULL with the reason: this machine does
 * not have it. "cuda" is tested where EVP_CUDA_PLUGIN names an object, which then must work. EVP_TEST_BACKEND leaves
 * out all but the one it names and the reference. */
struct backend *listed_open(const struct backend_options *options, struct err *why);

/* Opens the pairs one after another. A backend that this machine does not have (ERR_DEVICE) is left out. */
void each_pair(void (*test)(const struct pair *));

/* The cpu in f32 with more threads than a small product has parts for. Without a reference. */
void on_many_threads(void (*test)(const struct pair *));

/* Those that each_pair() leaves out, and the reasons. */
void each_missing(void (*say)(const char *name, const char *why));

/* ---- numbers on the device: free them ----------------------------------- */

/* n numbers, about normal, from a seed of the name and n: the same for both backends of a pair, and of its coarser
 * dtype. numbers: as f32; stored: of the backend's dtype. */
float *numbers(struct backend *be, const char *name, size_t n);
void *stored(struct backend *be, const char *name, size_t n);
int32_t *integers(struct backend *be, const char *name, size_t n, int below);
/* All NAN: what an op forgot to write shows. */
float *space(struct backend *be, size_t n);
void *stored_space(struct backend *be, size_t n);
int32_t *integer_space(struct backend *be, size_t n);
/* Copies of host arrays. */
float *numbers_from(struct backend *be, const float *host, size_t n);
void *stored_from(struct backend *be, const float *host, size_t n);
/* A weight of a dense matrix, with its infinities and nans, which a backend may refuse in a file. Free it. */
struct weight *weight_from(struct backend *be, const struct mat *host);
int32_t *integers_from(struct backend *be, const int32_t *host, size_t n);
void *bytes_from(struct backend *be, const void *host, size_t bytes);
/* One more number follows each of these, except bytes_from(), which no op may overwrite. */

/* Number i of a stored array. */
void *stored_at(const struct backend *be, void *at, size_t i);

struct mat mat_of(float *at, int rows, int cols);
struct mat stored_mat(const struct backend *be, void *at, int rows, int cols);

/* n numbers of the pair's dtype on the host, as numbers() has them; free() them. */
float *host_numbers(const char *name, size_t n);

/* The numbers of an array back on the host; free() them. The number after them is checked. */
float *read_numbers(struct backend *be, const float *device, size_t n, const char *what);
float *read_stored(struct backend *be, void *device, size_t n, const char *what);
int32_t *read_integers(struct backend *be, const int32_t *device, size_t n, const char *what);

/* ---- comparison --------------------------------------------------------- */

/* Arrays of n numbers on both devices. */
struct results {
    void *want, *got;
    size_t n;
};

/* How far apart they may be: when both backends compute in f32, and when one of them stores in bf16. */
struct tolerance {
    double abs, eps;
};
struct tolerances {
    struct tolerance f32, bf16;
};
#define EXACT    ((struct tolerances){ { 0, 0 }, { 0, 0 } })
/* A bf16 has 8 bits: two neighbours differ by this part of them or by half of it. */
#define BF16_EPS 0x1p-7

/* Asserts that arrays on the host agree. */
struct host_results {
    const float *want, *got;
    size_t n;
};
void same_numbers(const struct pair *p, struct host_results r, struct tolerances within, const char *what);

/* Asserts that arrays of f32, of the backends' dtypes, or of integers agree; frees both. `what` names the case. */
void same_floats(const struct pair *p, struct results r, struct tolerances within, const char *what);
void same_stored(const struct pair *p, struct results r, struct tolerances within, const char *what);
void same_integers(const struct pair *p, struct results r, const char *what);

/* Asserts that device memory holds the same bits, as backend.h promises of what is computed alone and in company. */
void same_bits(struct backend *be, const void *alone, const void *together, size_t bytes, const char *what);

/* All ops so far were done without a failure. */
void must_sync(struct backend *be);

#endif

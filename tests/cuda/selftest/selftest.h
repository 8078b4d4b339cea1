/* selftest.h - a test of the emulator: a function that returns, or ends the process with words that are known before.
 */
#ifndef EVP_SELFTEST_H
#define EVP_SELFTEST_H

#include <cuda_runtime.h>
#include <cuda_primitives.h>

#include <stdio.h>
#include <stdlib.h>
#include <vector>

struct test {
    const char *name;
    void (*run)();
    const char *fails;       // words of the report in one thread order at least; NULL: it passes in all
    const char *environment; // NAME=VALUE; NULL: none
};

/* What the thread sanitizer or emulated_race.cpp says; such a test runs only where the program is built with one. */
#define RACE            " race"
/* What the builds without them say. */
#define NOT_TSAN(words) "!" words
/* What emulated_race.cpp alone says. */
#define FOREIGN(words)  "?" words

/* Up to one without a name. */
extern const struct test right_tests[], fault_tests[], host_tests[], product_tests[], hopper_tests[], box_tests[];

inline void must(bool holds, const char *what, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: wrong: %s\n", file, line, what);
    exit(1);
}
#define MUST(x) must(x, #x, __FILE__, __LINE__)
#define CUDA(x) must((x) == cudaSuccess, #x, __FILE__, __LINE__)

/* The first address of shared memory from `at` on where a tile of products may begin. */
__device__ inline char *aligned(char *at)
{
    enum { ALIGN = 1024 };
    return at + (ALIGN - shared_address(at) % ALIGN) % ALIGN;
}

/* n numbers on the device, from a host array or poison. */
template <class T> inline T *device_array(size_t n, const T *host = NULL)
{
    T *at;

    CUDA(cudaMalloc(&at, n * sizeof(T)));
    if (host)
        CUDA(cudaMemcpy(at, host, n * sizeof(T), cudaMemcpyHostToDevice));
    return at;
}

template <class T> inline std::vector<T> back(const T *at, size_t n)
{
    std::vector<T> host(n);

    CUDA(cudaMemcpy(host.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

#endif

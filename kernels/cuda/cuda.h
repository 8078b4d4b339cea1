/* cuda.h - the "cuda" backend as the tools see it: one shared object, evp-cuda.so, opened on demand.
 *
 * No tool is linked with CUDA. The object exports one name, evp_cuda_plugin, a struct cuda_plugin; its open() returns
 * an ordinary struct backend. The object is the file that EVP_CUDA_PLUGIN names, or else evp-cuda.so beside the tool,
 * or else evp-cuda.so in ../lib/evp from there (PREFIX/lib/evp). tests/cuda/ builds an object with the same symbol and
 * an emulated device.
 */
#ifndef EVP_CUDA_H
#define EVP_CUDA_H

#include "kernels/backend.h"

/* Raised when kernels/backend.h changes in a way that CUDA_PLUGIN_LAYOUT does not reflect. */
enum { CUDA_PLUGIN_ABI = 1 };

/* A number made of the sizes of all structs that cross the interface: a changed layout changes it. */
#define CUDA_PLUGIN_LAYOUT                                                                                             \
    ((uint32_t)(sizeof(struct backend) + 3 * sizeof(struct rope_job) + 5 * sizeof(struct attn_job) +                   \
                11 * sizeof(struct column_job) + 13 * sizeof(struct experts) + 17 * sizeof(struct quant_item) +        \
                19 * sizeof(struct work_shape) + 41 * sizeof(struct moment_job) + 23 * sizeof(struct slot_copy) +      \
                29 * sizeof(struct backend_options) + 43 * sizeof(struct cuda_plugin) + 31 * sizeof(struct err) +      \
                37 * sizeof(struct weight)))

#define CUDA_PLUGIN_NAME   "evp-cuda.so"
#define CUDA_PLUGIN_SYMBOL evp_cuda_plugin

/* How products of one shape and result type are computed; the numbers are cublasLt's. */
struct cuda_choice {
    const char *way; // "cublasLt", "ours", or "open" before the first such product
    int n_differed;  // candidates rejected because rows had other bits alone than among others
    int id, tile, stages, cluster, custom;
};

struct cuda_plugin {
    uint32_t abi, layout; // CUDA_PLUGIN_ABI, CUDA_PLUGIN_LAYOUT: checked before anything else
    /* As backend_open(). ERR_DEVICE: no driver, no device, or one of them is too old; the message says which. */
    struct backend *(*open)(const struct backend_options *options, struct err *err);
    int (*devices)(int *n, struct err *err);
    /* Bytes per second from the host's pinned memory to the device of such a backend, by its clock. */
    int (*upload_rate)(struct backend *be, double *bytes_per_s, struct err *err);
    void (*choice)(struct backend *be, const struct weight *w, enum dtype result, struct cuda_choice *choice);
};

/* Opens the object, once per process, and a backend from it. ERR_DEVICE says what is missing and how to get it. */
struct backend *cuda_load(const struct backend_options *options, struct err *err);

/* The number of devices; ERR_DEVICE where there is none. Afterwards the process cannot fork: it has asked the
 * driver. */
int cuda_devices(int *n, struct err *err) MUST_CHECK;

/* Bytes per second from pinned host memory to the device of a backend from cuda_load(). */
int cuda_upload_rate(struct backend *be, double *bytes_per_s, struct err *err) MUST_CHECK;

/* How such a backend computes x W^T with results of this type. */
int cuda_product_choice(struct backend *be, const struct weight *w, enum dtype result, struct cuda_choice *choice,
                        struct err *err) MUST_CHECK;

#endif

/* serving.h - the times of a GPU that serves, where the profile was made on another machine.
 *
 * Not a measurement: times are computed from operations and bytes of the table, and from a few figures of the GPU.
 * Where the figures come from NVIDIA's data sheets they are what can be expected of the peaks, by the shares below. A
 * profile made on that GPU needs none of this: its times are measured.
 *
 *     prefill_s     operations of the prefill / (half of the dense bf16 peak), or tokens / (tokens per second)
 *     question_s    shrinks or grows as the context's prefill does
 *     decompress_s  of configs that quantise: (bytes of the variant + bytes of its keys and values) / (four fifths of
 *                   the memory's bandwidth)
 *     to the GPU    four fifths of one direction of its PCIe, for tiers.json (formats/tiers.h)
 */
#ifndef EVP_SERVING_H
#define EVP_SERVING_H

#include "base/err.h"
#include "profiler/table/table.h"

/* One GPU, from the data sheet named: dense bf16 without sparsity; PCIe: one direction. */
struct serving_gpu {
    const char *name, *source;
    double flop_per_s, memory_bytes_per_s, pcie_bytes_per_s, memory_bytes;
};

#define SERVING_GPUS "H200|H100|H100-PCIe|A100|L40S|L4|A10"

/* NULL with ERR_USAGE: none of SERVING_GPUS. */
const struct serving_gpu *serving_find(const char *name, struct err *err);

/* Work of so many operations that moves so many bytes: whichever takes longer. */
double serving_seconds(const struct serving_gpu *gpu, double flop, double bytes);

/* Bytes per second from the host's memory to the GPU. */
double serving_to_device(const struct serving_gpu *gpu);

struct serving {
    const struct serving_gpu *gpu; // NULL: not asked for
    double prefill_tokens_per_s;   // above what is computed for the GPU; 0: not asked for
};

/* Replaces the times of a table. Again with the same gives the same. ERR_FORMAT: a GPU is asked for and the table does
 * not say how many operations a prefill takes. */
int serving_apply(struct table *t, const struct serving *s, struct err *err) MUST_CHECK;

#endif

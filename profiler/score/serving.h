/* serving.h - computes the times of the serving GPU, for a profile made on another machine.
 *
 * Not a measurement: the times follow from the table's operations and bytes and from a few figures of the GPU. Figures
 * from NVIDIA's data sheets are peaks, reduced to the shares below. A profile made on the serving GPU itself does not
 * need this: its times are measured.
 *
 *     prefill_s     operations of the prefill / (half of the dense bf16 peak), or tokens / (tokens per second)
 *     question_s    scaled by the same factor as the context's prefill
 *     decompress_s  of configs that quantise: (bytes of the variant + bytes of its keys and values) / (four fifths of
 *                   the memory's bandwidth)
 *     decode_s      not known
 *     to the GPU    four fifths of one direction of PCIe, for tiers.json (formats/tiers.h)
 */
#ifndef EVP_SERVING_H
#define EVP_SERVING_H

#include "base/err.h"
#include "profiler/table/table.h"

/* A GPU, from the data sheet `source`: dense bf16 without sparsity; PCIe in one direction. */
struct serving_gpu {
    const char *name, *source;
    double flop_per_s, memory_bytes_per_s, pcie_bytes_per_s, memory_bytes;
};

#define SERVING_GPUS                                                                                                   \
    "B300|B200|GB200|H200|H100|H100-PCIe|H20|A100|L40S|L4|A10|A10G|RTX-PRO-6000|RTX-6000-Ada|RTX-5090|RTX-4090|"       \
    "MI355X|MI325X|MI300X|FIGURES"

/* By name, or FIGURES: "tflops=989,memory=80G,bandwidth=3.35T", and pcie=64G unless given; then *given is the result.
 * NULL with ERR_USAGE: neither. */
const struct serving_gpu *serving_find(const char *name, struct serving_gpu *given, struct err *err);

/* Time of work: of its operations or its bytes, whichever takes longer. */
double serving_seconds(const struct serving_gpu *gpu, double flop, double bytes);

/* Bytes per second from the host's memory to the GPU. */
double serving_to_device(const struct serving_gpu *gpu);

/* Makes the times of decoding unknown: they are the profiling machine's. */
void serving_forget_decoding(struct table *t);

struct serving {
    const struct serving_gpu *gpu; // NULL: not asked for
    double prefill_tokens_per_s;   // overrides the GPU's; 0: not asked for
};

/* Replaces the times of a table; a second call with the same arguments changes nothing. ERR_FORMAT: a GPU is asked for,
 * and the table lacks the operations of a prefill. */
int serving_apply(struct table *t, const struct serving *s, struct err *err) MUST_CHECK;

#endif

/* registry.h - the methods by name, for registry.c, and the parameter they share; only methods/ includes it. */
#ifndef EVP_REGISTRY_H
#define EVP_REGISTRY_H

#include "methods/method.h"

#include <math.h>

extern const struct method method_knorm, method_keydiff, method_snapkv, method_streamingllm, method_kivi;

/* First parameter of every dropping method. The bound is the largest number below 1 that a range can make. */
#define PARAM_DROP                                                                                                     \
    {                                                                                                                  \
        .name = "drop", .alias = "compression_ratio", .min = 0, .max = 0.999999, .otherwise = (double)NAN,             \
        .help = "share of KV pairs removed"                                                                            \
    }

#endif

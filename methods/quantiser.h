/* quantiser.h - what quantisers share: their matrices, and heads on their way to the backend. */
#ifndef EVP_QUANTISER_H
#define EVP_QUANTISER_H

#include "methods/method.h"

/* The matrices of n tokens of one head, `k` and `v` included; returns how many. */
int quantiser_parts(const struct config_stage *stage, int head_dim, int n, struct head_part part[HEAD_PART_MAX]);

/* Calls op, the backend's quantise or dequantise, with many heads of the layer at a time. */
typedef void quantise_op(struct backend *be, const struct quant_item *item, int n_items);
void quantise_heads(struct backend *be, const struct packed_layer *layer, quantise_op *op);

#endif

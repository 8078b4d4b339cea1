/* variant_error.h - what a quantiser loses: how far a variant's rows are from those that it was made of. */
#ifndef EVP_VARIANT_ERROR_H
#define EVP_VARIANT_ERROR_H

#include "variants/variant.h"

/* error (L, 2): of the keys and the values of each layer, the root of the sum of squared differences over the sum of
 * squares of the kept rows; 0 where they are all 0. Of a variant made with VARIANT_PAYLOAD from `full`. */
int variant_errors(const struct kv_full *full, const struct variant *v, double *error, struct err *err) MUST_CHECK;

#endif

/* round_cache.c - rounds a cache to bf16, so that answers come from the numbers that an engine reads from a payload. */
#include "variants/variant_internal.h"

#include "codes/half.h"

/* Rounds n numbers on the device to bf16. */
static int round_numbers(struct backend *be, float *at, size_t n, struct err *err)
{
    enum { SOME = 16384 };
    float number[SOME];

    for (size_t i = 0; i < n; i += SOME) {
        size_t some = n - i < SOME ? n - i : SOME;
        if (be->read(be, number, at + i, some * sizeof(*number), err))
            return err->code;
        for (size_t j = 0; j < some; j++)
            number[j] = bf16_to_f32(bf16_from_f32(number[j]));
        be->write(be, at + i, number, some * sizeof(*number));
    }
    return 0;
}

int round_cache(const struct kv_full *full, struct err *err)
{
    size_t n = (size_t)full->n_tokens * (size_t)full->shape.head_dim;

    if (full->shape.dtype == DTYPE_BF16)
        return 0;
    for (int h = 0; h < kv_all_layers(&full->shape) * full->shape.n_kv_heads; h++)
        if (round_numbers(full->backend, full->rows[h].k, n, err) ||
            round_numbers(full->backend, full->rows[h].v, n, err))
            return err->code;
    return 0;
}

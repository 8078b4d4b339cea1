/* The floats of 16 and 8 bits: every number, every midpoint, and what is beyond the largest. */
#include "codes/half.h"

#include <criterion/criterion.h>
#include <math.h>

/* Between two neighbours the midpoint goes to the even one, anything beside it to the nearer. */
Test(half, f16_rounds_to_nearest_even)
{
    for (uint16_t h = 0; h < 0x7bff; h++) {
        float low = f16_to_f32(h), high = f16_to_f32(h + 1), middle = (low + high) / 2; // exact: f32 has the bits
        cr_assert(low < high && f16_from_f32(low) == h && f16_from_f32(-low) == (h | 0x8000), "%#x", h);
        cr_assert_eq(f16_from_f32(middle), h + (h & 1), "%#x", h);
        cr_assert_eq(f16_from_f32(nextafterf(middle, -1)), h, "%#x", h);
        cr_assert_eq(f16_from_f32(nextafterf(middle, INFINITY)), h + 1, "%#x", h);
    }
    cr_assert_eq(f16_to_f32(0x3c00), 1);
    cr_assert_eq(f16_to_f32(0x0001), 0x1p-24f);
    cr_assert_eq(f16_to_f32(0x7bff), 65504);
    cr_assert_eq(f16_from_f32(65519.996f), 0x7bff);
    cr_assert_eq(f16_from_f32(65520), 0x7c00);
    cr_assert_eq(f16_from_f32_finite(-1e30f), 0xfbff);
    cr_assert(isnan(f16_to_f32(f16_from_f32(NAN))) && isinf(f16_to_f32(f16_from_f32(INFINITY))));
}

Test(half, bf16_rounds_to_nearest_even)
{
    cr_assert_eq(bf16_from_f32(1), 0x3f80);
    cr_assert_eq(bf16_from_f32(1 + 0x1p-8f), 0x3f80); // midpoints
    cr_assert_eq(bf16_from_f32(1 + 0x3p-8f), 0x3f82);
    cr_assert_eq(bf16_from_f32(nextafterf(1 + 0x1p-8f, 2)), 0x3f81);
    cr_assert_eq(bf16_from_f32(3.4028235e38f), 0x7f80); // beyond the largest bf16
    cr_assert(isnan(bf16_to_f32(bf16_from_f32(half_float(0x7f800001)))));
    for (uint32_t b = 0; b < 0x7f80; b++)
        cr_assert_eq(bf16_from_f32(bf16_to_f32((uint16_t)b)), b);
}

/* The value of a code that is a number. */
static float e4m3(int code)
{
    int exponent = code >> 3 & 15, fraction = code & 7;

    return exponent ? ldexpf((float)(8 + fraction), exponent - 10) : ldexpf((float)fraction, -9);
}

Test(half, e4m3_rounds_to_nearest_even_and_stops_at_448)
{
    for (int h = 0; h < 0x7e; h++) {
        float low = e4m3(h), high = e4m3(h + 1), middle = (low + high) / 2;
        cr_assert(low < high && e4m3_from_f32(low) == h && e4m3_from_f32(-low) == (h | 0x80), "%#x", h);
        cr_assert_eq(e4m3_from_f32(middle), h + (h & 1), "%#x", h);
        cr_assert_eq(e4m3_from_f32(nextafterf(middle, -1)), h, "%#x", h);
        cr_assert_eq(e4m3_from_f32(nextafterf(middle, INFINITY)), h + 1, "%#x", h);
    }
    cr_assert_eq(e4m3(0x7e), 448);
    cr_assert_eq(e4m3_from_f32(449), 0x7e);
    cr_assert_eq(e4m3_from_f32(-INFINITY), 0xfe);
    cr_assert_eq(e4m3_from_f32(NAN) & 0x7f, 0x7f);
}

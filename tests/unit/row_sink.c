/* Rows in a caller's buffer are what codes/half.h makes of each number, whatever instructions write them. */
#include "loader/libevicpress/row_sink.h"

#include "loader/libevicpress/evicpress.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 1 << 16 };

static const int types[] = { EVICPRESS_BF16, EVICPRESS_F16, EVICPRESS_F32, EVICPRESS_E4M3 };

static void narrow_one(char *to, int type, float x)
{
    const uint16_t b = bf16_from_f32(x), h = f16_from_f32(x);
    const uint8_t e = e4m3_from_f32(x);

    if (type == EVICPRESS_F32)
        memcpy(to, &x, sizeof(x));
    else if (type == EVICPRESS_E4M3)
        *to = (char)e;
    else
        memcpy(to, type == EVICPRESS_BF16 ? &b : &h, sizeof(b));
}

/* Compares rows of a type with the numbers x (n). */
static void compare(const char *got, int type, const float *x, int n, const char *what)
{
    const size_t size = row_type_bytes(type);

    for (int i = 0; i < n; i++) {
        char want[sizeof(float)];
        narrow_one(want, type, x[i]);
        cr_assert_eq(memcmp(got + (size_t)i * size, want, size), 0, "%s, type %d, number %d: %a", what, type, i,
                     (double)x[i]);
    }
}

/* Every bf16 there is: subnormals of each type, numbers beyond its largest, infinities, nans. */
Test(row_sink, every_number_of_a_full_row)
{
    static uint16_t row[NUMBERS];
    static float x[NUMBERS];
    char *to = malloc(NUMBERS * sizeof(float) + 1);

    for (int i = 0; i < NUMBERS; i++) {
        row[i] = (uint16_t)(i * 40503);                  // neighbours are of different kinds
        row[i] |= (row[i] & 0x7fff) > 0x7f80 ? 0x40 : 0; // a quiet nan: full rows as bf16 are copied
        x[i] = bf16_to_f32(row[i]);
    }
    for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++)
        for (int columns = 1000; columns <= 1024; columns += 3) { // most are no multiple of a vector
            const int n = NUMBERS / columns;
            const size_t size = row_type_bytes(types[t]), end = (size_t)(n * columns) * size;
            const struct row_sink sink = {
                .to = to, .type = types[t], .row_stride = columns, .column_stride = 1, .columns = columns
            };
            to[end] = 'x';
            row_sink_bf16(&sink, 0, n, row);
            compare(to, types[t], x, n * columns, "a full row");
            cr_assert_eq(to[end], 'x');
        }
    free(to);
}

/* Rows that are apart in the buffer, of whole cache lines or `shift` numbers beside them. */
static void apart(const uint16_t *row, int type, int shift)
{
    enum { K = 64, N = 64, STRIDE = 3 * K };
    const size_t size = row_type_bytes(type), bytes = N * STRIDE * size;
    char *all = aligned_alloc(64, bytes + 64), *to = all + (size_t)shift * size;
    const struct row_sink sink = { .to = to, .type = type, .row_stride = STRIDE, .column_stride = 1, .columns = K };
    float x[K];

    memset(all, 'x', bytes + 64);
    row_sink_bf16(&sink, 0, N, row);
    row_sink_end();
    for (int i = 0; i < N; i++, to += STRIDE * size) {
        for (int k = 0; k < K; k++)
            x[k] = bf16_to_f32(row[i * K + k]);
        compare(to, type, x, K, "a row apart");
        for (size_t at = K * size; at < (STRIDE - 1) * size; at++)
            cr_assert_eq(to[at], 'x');
    }
    free(all);
}

/* Every bf16 that is a normal number in f16; the last of each row every odd one, and its neighbours. */
Test(row_sink, rows_apart)
{
    static const uint16_t odd[] = { 0,      0x4781, 0x387f, 0x3880, 0x477f, 0x4780,
                                    0x7f80, 0x7fc0, 0xb87f, 0xb880, 0xc77f, 0xc780 };
    uint16_t row[64 * 64];

    for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++)
        for (int sign = 0; sign <= 0x8000; sign += 0x8000) {
            for (int i = 0; i < 64 * 64; i++)
                row[i] = (uint16_t)(sign | (0x3880 + i % 0xf00));
            apart(row, types[t], 0);
            apart(row, types[t], 1);
            for (int i = 63, n = 0; i < 64 * 64; i += 64, n++)
                row[i] = odd[n % 12];
            apart(row, types[t], 0);
        }
}

/* Scales of every kind, hostile ones too. */
static uint16_t scale_of(int i)
{
    static const uint16_t odd[] = { 0x0000, 0x0001, 0x03ff, 0x7bff, 0x7c00, 0x7fff, 0xfc00, 0x8001 };

    return i % 5 == 0 ? odd[i / 5 % 8] : (uint16_t)(0x2c00 + (uint32_t)i * 2654435761u % 0x1400);
}

/* Codes of two groups of rows and columns, with scales of every kind: as the definition says, number by number. */
static void decode(int bits, bool keys, int type)
{
    enum { K = 64, N = 64, GROUP = 32 };
    static uint32_t codes[K * N];
    static uint16_t scales[K * N / GROUP], zeros[K * N / GROUP];
    static float x[K * N];
    static char to[K * N * sizeof(float)];
    const struct row_sink sink = { .to = to, .type = type, .row_stride = K, .column_stride = 1, .columns = K };
    const struct row_codes c = { bits, GROUP, N, codes, scales, zeros };
    const struct row_span span = { 3, N - 7, 0 };
    const uint32_t mask = (1u << bits) - 1;

    for (int i = 0; i < K * N * bits / 32; i++)
        codes[i] = (uint32_t)i * 2654435761u ^ (uint32_t)i >> 3;
    for (int i = 0; i < K * N / GROUP; i++) {
        scales[i] = scale_of(i);
        zeros[i] = scale_of(3 * i + 1);
    }
    for (int64_t row = span.skip; row < span.skip + span.n; row++)
        for (int k = 0; k < K; k++) {
            const int64_t at = keys ? k * N + row : row * K + k;
            const uint32_t code = codes[at * bits / 32] >> at * bits % 32 & mask;
            x[(row - span.skip) * K + k] = (float)code * f16_to_f32(scales[at / GROUP]) + f16_to_f32(zeros[at / GROUP]);
        }
    (keys ? row_sink_keys : row_sink_values)(&sink, &c, &span);
    compare(to, type, x, (int)span.n * K, keys ? "keys" : "values");
}

Test(row_sink, codes_in_groups)
{
    for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++)
        for (int bits = 2; bits <= 8; bits *= 2) {
            decode(bits, true, types[t]);
            decode(bits, false, types[t]);
        }
}

/* Quantisation there and back: against the reference to the bit, and by hand. */
#include "codes/half.h"
#include "codes/quant_rotation.h"
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

struct quantised {
    void *x;
    int32_t *codes, *scales, *zeros; // the last two as pairs of f16
};

static const struct quant_case {
    int rows, cols, bits, group;
} cases[] = { { 32, 64, 2, 32 },    { 128, 32, 4, 32 }, { 64, 96, 4, 32 }, { 128, 128, 2, 64 },
              { 256, 128, 4, 128 }, { 64, 64, 8, 4 },   { 40, 72, 4, 8 },  { 48, 34, 16, 2 },
              { 96, 96, 1, 32 },    { 600, 33, 8, 12 }, { 32, 264, 8, 4 }, { 24, 48, 8, 12 } };

static struct quant_item item_of(struct quant_case c, enum quant_lines lines, const struct quantised *q)
{
    return (struct quant_item){ .lines = lines,
                                .rows = c.rows,
                                .cols = c.cols,
                                .bits = c.bits,
                                .group = c.group,
                                .x = q->x,
                                .codes = q->codes,
                                .scales = (uint16_t *)q->scales,
                                .zeros = (uint16_t *)q->zeros };
}

/* dequantised: x holds what comes back; otherwise it is as it was. */
static struct quantised quantised(struct backend *be, enum quant_lines lines, struct quant_case c, bool dequantised)
{
    size_t n = (size_t)(c.rows * c.cols), groups = n / (size_t)c.group;
    const float same[] = { 0.3125f, 0.3125f, 0.3125f }, wild[] = { 0x1p100f, -0x1p100f, 0x1p-30f };
    float *host = host_numbers("x", n);

    for (int i = 0; i < 3; i++)
        host[i] = c.rows > 64 ? wild[i] : same[i];
    struct quantised q = { stored_from(be, host, n), integer_space(be, n * (size_t)c.bits / 32),
                           integer_space(be, groups / 2), integer_space(be, groups / 2) };
    const struct quant_item item = item_of(c, lines, &q);
    be->quantise(be, &item, 1);
    if (dequantised)
        be->dequantise(be, &item, 1);
    free(host);
    return q;
}

static void check_quantise(const struct pair *p)
{
    /* In bf16 what comes back is rounded; beside f32, where it is not, the codes are still the same. */
    const struct tolerances back = { { 0, 0 }, { 0, p->want->dtype == p->got->dtype ? 0 : BF16_EPS / 2 } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (enum quant_lines lines = QUANT_COLUMNS; lines <= QUANT_ROWS; lines++)
            for (int dequantised = 0; dequantised < 2; dequantised++) {
                size_t n = (size_t)(cases[i].rows * cases[i].cols), groups = n / (size_t)cases[i].group;
                if (lines == QUANT_ROWS && cases[i].cols % cases[i].group)
                    continue;
                struct quantised want = quantised(p->want, lines, cases[i], dequantised),
                                 got = quantised(p->got, lines, cases[i], dequantised);
                if (dequantised)
                    same_stored(p, (struct results){ want.x, got.x, n }, back, "dequantised");
                else
                    same_stored(p, (struct results){ want.x, got.x, n }, EXACT, "quantise leaves its input");
                same_integers(p, (struct results){ want.codes, got.codes, n * (size_t)cases[i].bits / 32 }, "codes");
                same_integers(p, (struct results){ want.scales, got.scales, groups / 2 }, "scales");
                same_integers(p, (struct results){ want.zeros, got.zeros, groups / 2 }, "zeros");
            }
}

Test(kernels, quantise)
{
    each_pair(check_quantise);
}

/* Column c of 32 rows holds c + 0 .. c + 31: zero is c, scale 31 / 3, and code i is i * 3 / 31 rounded. */
static void check_by_hand(const struct pair *p)
{
    struct backend *be = p->got;
    const struct quant_case two = { 32, 2, 2, 32 };
    const float scale = f16_to_f32(f16_from_f32(31.0f / 3));
    float host[64];

    for (int i = 0; i < 64; i++)
        host[i] = (float)(i / 2 + i % 2); // two columns
    struct quantised q = { stored_from(be, host, 64), integer_space(be, 4), integer_space(be, 1),
                           integer_space(be, 1) };
    const struct quant_item item = item_of(two, QUANT_COLUMNS, &q);
    be->quantise(be, &item, 1);
    be->dequantise(be, &item, 1);
    float *x = read_stored(be, q.x, 64, "dequantised");
    int32_t *codes = read_integers(be, q.codes, 4, "codes"), *scales = read_integers(be, q.scales, 1, "scales"),
            *zeros = read_integers(be, q.zeros, 1, "zeros");
    for (int c = 0; c < 2; c++) {
        cr_assert_eq(f16_to_f32((uint16_t)(zeros[0] >> 16 * c)), (float)c, "%s", p->name);
        cr_assert_eq(f16_to_f32((uint16_t)(scales[0] >> 16 * c)), scale, "%s", p->name);
        for (int i = 0; i < 32; i++) {
            uint32_t code = (uint32_t)codes[2 * c + i / 16] >> 2 * (i % 16) & 3;
            float back = (float)code * scale + (float)c;
            cr_assert_eq(code, (uint32_t)rintf((float)i / scale), "%s: column %d row %d", p->name, c, i);
            cr_assert_eq(x[2 * i + c], be->dtype == DTYPE_F32 ? back : bf16_to_f32(bf16_from_f32(back)), "%s", p->name);
        }
    }
    void *all[] = { q.x, q.codes, q.scales, q.zeros }, *read[] = { x, codes, scales, zeros };
    for (int i = 0; i < 4; i++) {
        be->free(be, all[i]);
        free(read[i]);
    }
}

Test(kernels, quantise_by_hand)
{
    each_pair(check_by_hand);
}

/* A number half way between two codes gets the even one. */
static void check_halves(const struct pair *p)
{
    const float host[] = { 0, 0.5f, 1, 1.5f, 2, 2.5f, 3, 0.25f, 0, 0.75f, 1.25f, 1.75f, 2.25f, 2.75f, 3, 3 };
    const int32_t want = 0 | 0 << 2 | 1 << 4 | 2 << 6 | 2 << 8 | 2 << 10 | 3 << 12 | 0 << 14 | 0 << 16 | 1 << 18 |
                         1 << 20 | 2 << 22 | 2 << 24 | 3 << 26 | (int32_t)(15u << 28);
    struct backend *be = p->got;
    struct quantised q = { stored_from(be, host, 16), integer_space(be, 1), integer_space(be, 1),
                           integer_space(be, 1) };
    const struct quant_item item = item_of((struct quant_case){ 1, 16, 2, 16 }, QUANT_ROWS, &q);

    be->quantise(be, &item, 1);
    int32_t *code = read_integers(be, q.codes, 1, "codes");
    cr_assert_eq(*code, want, "%s: %x, not %x", p->name, (unsigned)*code, (unsigned)want);
    void *all[] = { q.x, q.codes, q.scales, q.zeros };
    for (int i = 0; i < 4; i++)
        be->free(be, all[i]);
    free(code);
}

Test(kernels, quantise_rounds_half_to_even)
{
    each_pair(check_halves);
}

/* Several items in one call, some of them without anything. */
static void check_items(const struct pair *p)
{
    struct backend *be = p->got;
    const struct quant_case c = { 32, 64, 4, 32 }, none = { 0, 64, 4, 32 };
    struct quantised alone[2], together[2];
    struct quant_item items[3];

    for (int i = 0; i < 2; i++) {
        alone[i] = quantised(be, (enum quant_lines)i, c, false);
        together[i] = quantised(be, (enum quant_lines)i, c, false);
        items[2 * i] = item_of(c, (enum quant_lines)i, &together[i]);
    }
    items[1] = item_of(none, QUANT_COLUMNS, &(struct quantised){ 0 });
    be->quantise(be, items, 3);
    be->dequantise(be, items, 3);
    for (int i = 0; i < 2; i++) {
        const struct quant_item item = item_of(c, (enum quant_lines)i, &alone[i]);
        be->dequantise(be, &item, 1);
        same_bits(be, alone[i].x, together[i].x, 32 * 64 * dtype_size(be->dtype), "one item of three");
        void *all[] = { alone[i].x,    alone[i].codes,    alone[i].scales,    alone[i].zeros,
                        together[i].x, together[i].codes, together[i].scales, together[i].zeros };
        for (int j = 0; j < 8; j++)
            be->free(be, all[j]);
    }
}

Test(kernels, quantise_items_do_not_know_each_other)
{
    each_pair(check_items);
}

/* ---- rows one by one ------------------------------------------------------- */

static const struct row_case {
    struct quant_row row;
    bool rotated; // by a matrix
} row_cases[] = {
    { { .format = QUANT_E4M3, .columns = 64, .scale = QUANT_SCALE_HEAD }, false },
    { { .format = QUANT_E4M3, .columns = 80, .scale = QUANT_SCALE_TOKEN }, false },
    { { .format = QUANT_E4M3, .columns = 33, .scale = QUANT_SCALE_ONE }, false },
    { { .format = QUANT_NVFP4, .columns = 16 }, false },
    { { .format = QUANT_NVFP4, .columns = 80 }, false },
    { { .format = QUANT_LLOYD, .columns = 64, .bits = 4 }, false },
    { { .format = QUANT_LLOYD, .columns = 8, .bits = 3, .f32_norms = true }, false },
    { { .format = QUANT_LLOYD, .columns = 128, .bits = 3, .outliers = 32, .f32_norms = true }, true },
    { { .format = QUANT_LLOYD, .columns = 64, .bits = 3, .outliers = 32 }, false },
    { { .format = QUANT_UNIFORM, .columns = 80, .bits = 3 }, false },
    { { .format = QUANT_UNIFORM, .columns = 64, .bits = 4 }, false },
};
enum { ROW_FORMATS = sizeof(row_cases) / sizeof(*row_cases), MANY_ROWS = 70 };

/* With its rotation; free() that. */
static struct quant_row row_format(int f)
{
    struct quant_row row = row_cases[f].row;

    row.rotation = row_cases[f].rotated ? quant_rotation_new(&row) : NULL;
    return row;
}

struct packed_rows {
    void *x;
    int32_t *codes, *scales, *head; // each with a word more than it needs
};

static size_t words_of(size_t bytes)
{
    return bytes / 4 + 1;
}

/* Rows of about normal numbers, among them one that is all 0, one of small numbers and one with an outlier. */
static struct packed_rows rows_space(struct backend *be, const struct quant_row *q, int rows)
{
    const struct quant_bytes bytes = quant_row_bytes(q);
    size_t n = (size_t)(rows * q->columns);
    float *host = host_numbers("rows", n);

    for (int j = 0; j < q->columns && rows > 3; j++) {
        host[j] = 0;
        host[q->columns + j] *= 0x1p-24f;
        host[2 * q->columns + j] *= j == 5 ? 0x1p10f : 1;
    }
    struct packed_rows p = { stored_from(be, host, n), integer_space(be, words_of((size_t)rows * bytes.codes)),
                             integer_space(be, words_of((size_t)rows * bytes.scales)),
                             integer_space(be, words_of(bytes.head)) };
    free(host);
    return p;
}

static struct quant_item rows_item(const struct quant_row *q, int rows, const struct packed_rows *p)
{
    return (struct quant_item){
        .rows = rows, .cols = q->columns, .x = p->x, .row = *q, .at = { (uint8_t *)p->codes, p->scales, p->head }
    };
}

static void rows_free(struct backend *be, struct packed_rows *p)
{
    void *all[] = { p->x, p->codes, p->scales, p->head };

    for (int i = 0; i < 4; i++)
        be->free(be, all[i]);
}

static void check_rows(const struct pair *p)
{
    const struct tolerances back = { { 0, 0 }, { 0, p->want->dtype == p->got->dtype ? 0 : BF16_EPS / 2 } };

    for (int f = 0; f < ROW_FORMATS; f++) {
        for (int rows = 0; rows <= MANY_ROWS; rows += MANY_ROWS / 2) {
            const struct quant_row q = row_format(f);
            const struct quant_bytes bytes = quant_row_bytes(&q);
            struct packed_rows want = rows_space(p->want, &q, rows), got = rows_space(p->got, &q, rows);
            struct quant_item mine = rows_item(&q, rows, &want), other = rows_item(&q, rows, &got);
            p->want->quantise(p->want, &mine, 1);
            p->got->quantise(p->got, &other, 1);
            p->want->dequantise(p->want, &mine, 1);
            p->got->dequantise(p->got, &other, 1);
            same_stored(p, (struct results){ want.x, got.x, (size_t)(rows * q.columns) }, back, "rows");
            same_integers(p, (struct results){ want.codes, got.codes, words_of((size_t)rows * bytes.codes) }, "codes");
            same_integers(p, (struct results){ want.scales, got.scales, words_of((size_t)rows * bytes.scales) },
                          "scales of rows");
            same_integers(p, (struct results){ want.head, got.head, words_of(bytes.head) }, "what rows share");
            free((void *)(uintptr_t)q.rotation);
        }
    }
}

Test(kernels, quantise_rows)
{
    each_pair(check_rows);
}

/* Items of both kinds in one call. */
static void check_mixed(const struct pair *p)
{
    struct backend *be = p->got;
    const struct quant_case c = { 32, 64, 4, 32 };
    struct quantised groups = quantised(be, QUANT_COLUMNS, c, false),
                     alone_groups = quantised(be, QUANT_COLUMNS, c, false);
    struct packed_rows rows[ROW_FORMATS], alone[ROW_FORMATS];
    struct quant_row format[ROW_FORMATS];
    struct quant_item items[ROW_FORMATS + 1] = { item_of(c, QUANT_COLUMNS, &groups) },
                                          one = item_of(c, QUANT_COLUMNS, &alone_groups);

    be->dequantise(be, &one, 1);
    for (int f = 0; f < ROW_FORMATS; f++) {
        format[f] = row_format(f);
        rows[f] = rows_space(be, &format[f], MANY_ROWS - f);
        alone[f] = rows_space(be, &format[f], MANY_ROWS - f);
        items[f + 1] = rows_item(&format[f], MANY_ROWS - f, &rows[f]);
        one = rows_item(&format[f], MANY_ROWS - f, &alone[f]);
        be->quantise(be, &one, 1);
        be->dequantise(be, &one, 1);
    }
    be->quantise(be, items, ROW_FORMATS + 1);
    be->dequantise(be, items, ROW_FORMATS + 1);
    same_bits(be, alone_groups.x, groups.x, 32 * 64 * dtype_size(be->dtype), "groups beside rows");
    for (int f = 0; f < ROW_FORMATS; f++) {
        size_t n = (size_t)((MANY_ROWS - f) * format[f].columns);
        same_bits(be, alone[f].x, rows[f].x, n * dtype_size(be->dtype), "rows beside others");
        rows_free(be, &rows[f]);
        rows_free(be, &alone[f]);
        free((void *)(uintptr_t)format[f].rotation);
    }
    void *all[] = { groups.x,       groups.codes,       groups.scales,       groups.zeros,
                    alone_groups.x, alone_groups.codes, alone_groups.scales, alone_groups.zeros };
    for (int i = 0; i < 8; i++)
        be->free(be, all[i]);
}

Test(kernels, quantise_rows_and_groups_together)
{
    each_pair(check_mixed);
}

/* Largest 448 * 2: scale 2. Halves of 1.125 and 1.25 are borders; codes of e4m3 by hand. */
static void check_e4m3(const struct pair *p)
{
    const float host[] = { 896, -896, 2, 2.125f, 2.375f, -0x1p-8f, 0, 0x1p-10f };
    const uint8_t want[] = { 0x7e, 0xfe, 0x38, 0x38, 0x3a, 0x81, 0, 0 };
    const struct quant_row q = { .format = QUANT_E4M3, .columns = 8, .scale = QUANT_SCALE_HEAD };
    struct backend *be = p->got;
    struct packed_rows rows = { stored_from(be, host, 8), integer_space(be, 2), integer_space(be, 1),
                                integer_space(be, 1) };
    const struct quant_item item = rows_item(&q, 1, &rows);

    be->quantise(be, &item, 1);
    int32_t *codes = read_integers(be, rows.codes, 2, "codes"), *head = read_integers(be, rows.head, 1, "the scale");
    cr_assert_eq(*head, 0x40000000, "%s", p->name);
    for (int i = 0; i < 8; i++)
        cr_assert_eq((uint8_t)(codes[i / 4] >> i % 4 * 8), want[i], "%s: number %d", p->name, i);
    free(codes);
    free(head);
    rows_free(be, &rows);
}

Test(kernels, quantise_rows_by_hand)
{
    each_pair(check_e4m3);
}

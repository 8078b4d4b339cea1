/* cpu_quantise.c - quantising and its inverse.
 *
 * A group or a row is processed as contiguous f32 numbers: groups of columns, and all groups in bf16, are copied to
 * scratch.
 */
#include "kernels/cpu/cpu.h"

#include "codes/kivi_codes.h"

#include <string.h>

static void dequantise_group(float *x, int group, int bits, const int32_t *codes, uint16_t scale16, uint16_t zero16)
{
    float scale = f16_to_f32(scale16), zero = f16_to_f32(zero16);
    uint32_t mask = (1u << bits) - 1;
    int per_word = 32 / bits;

    for (int w = 0; w < group / per_word; w++, x += per_word)
        for (int i = 0; i < per_word; i++)
            x[i] = (float)((uint32_t)codes[w] >> i * bits & mask) * scale + zero;
}

enum way { PACK, UNPACK };

/* Group number `group` of the item, whose numbers are `line`. */
static void run_group(const struct quant_item *q, enum way way, float *line, size_t group)
{
    int32_t *codes = q->codes + group * (size_t)(q->group * q->bits / 32);

    if (way == PACK)
        kivi_pack(line, &(struct kivi_group){ q->group, q->bits, codes, &q->scales[group], &q->zeros[group] });
    else
        dequantise_group(line, q->group, q->bits, codes, q->scales[group], q->zeros[group]);
}

static void *element(const struct quant_item *q, enum dtype dtype, size_t row)
{
    return (char *)q->x + row * (size_t)q->cols * dtype_size(dtype);
}

/* `group` rows, all columns: the block is transposed, so that a column's numbers are contiguous, and back. line:
 * scratch (group + 1, cols). */
static void column_groups(const struct cpu *c, const struct quant_item *q, enum way way, int block, float *line)
{
    size_t per_line = (size_t)(q->rows / q->group), first = (size_t)block * (size_t)q->group;
    size_t cols = (size_t)q->cols, group = (size_t)q->group;
    float *turned = line + cols;

    for (size_t i = 0; i < group && way == PACK; i++) {
        c->rows->widen(line, element(q, c->base.dtype, first + i), c->base.dtype, q->cols);
        for (size_t j = 0; j < cols; j++)
            turned[j * group + i] = line[j];
    }
    for (size_t j = 0; j < cols; j++)
        run_group(q, way, turned + j * group, j * per_line + (size_t)block);
    for (size_t i = 0; i < group && way == UNPACK; i++) {
        for (size_t j = 0; j < cols; j++)
            line[j] = turned[j * group + i];
        c->rows->narrow(element(q, c->base.dtype, first + i), line, c->base.dtype, q->cols);
    }
}

static void row_groups(const struct cpu *c, const struct quant_item *q, enum way way, int row, float *line)
{
    size_t per_line = (size_t)(q->cols / q->group);

    if (way == PACK)
        c->rows->widen(line, element(q, c->base.dtype, (size_t)row), c->base.dtype, q->cols);
    for (size_t g = 0; g < per_line; g++)
        run_group(q, way, line + g * (size_t)q->group, (size_t)row * per_line + g);
    if (way == UNPACK)
        c->rows->narrow(element(q, c->base.dtype, (size_t)row), line, c->base.dtype, q->cols);
}

/* ---- rows one by one ------------------------------------------------------ */

/* What the rows of an item share. column: scratch (QUANT_PARTS + 1, cols). */
static void pack_head(const struct cpu *c, const struct quant_item *q, float *column)
{
    float *x = column + QUANT_PARTS * q->cols;

    memset(column, 0, QUANT_PARTS * (size_t)q->cols * sizeof(*column));
    for (int i = 0; i < q->rows; i++) {
        float *part = column + i % QUANT_PARTS * q->cols;
        c->rows->widen(x, element(q, c->base.dtype, (size_t)i), c->base.dtype, q->cols);
        for (int j = 0; j < q->cols; j++)
            part[j] = quant_column(&q->row, part[j], x[j]);
    }
    quant_head_pack(&q->row, q->at.head, column);
}

static void one_row(const struct cpu *c, const struct quant_item *q, enum way way, int row, float *x)
{
    const struct quant_at at = quant_row_at(&q->row, &q->at, (size_t)row);
    void *in_cache = element(q, c->base.dtype, (size_t)row);

    if (way == PACK) {
        c->rows->widen(x, in_cache, c->base.dtype, q->cols);
        quant_row_pack(&q->row, &at, x);
    } else {
        quant_row_unpack(&q->row, &at, x);
        c->rows->narrow(in_cache, x, c->base.dtype, q->cols);
    }
}

/* A thread's share of the rows of one item. */
static void run_rows(struct cpu *c, const struct quant_item *q, enum way way)
{
    float *x = cpu_scratch(c, &c->tile[cpu_thread()], quant_row_work(&q->row) * sizeof(*x));

#pragma omp for schedule(static) nowait
    for (int i = 0; i < q->rows; i++)
        if (x)
            one_row(c, q, way, i, x);
}

/* A thread's share of what the items' heads share; waits for all threads. */
static void run_heads(struct cpu *c, const struct quant_item *item, int n_items)
{
#pragma omp for schedule(dynamic)
    for (int i = 0; i < n_items; i++) {
        if (item[i].row.format == QUANT_MINMAX || quant_row_bytes(&item[i].row).head == 0)
            continue;
        size_t n = (QUANT_PARTS + 1) * (size_t)item[i].cols;
        float *column = cpu_scratch(c, &c->tile[cpu_thread()], n * sizeof(*column));
        if (column)
            pack_head(c, &item[i], column);
    }
}

/* ---- both ------------------------------------------------------------------ */

/* A thread's share of the blocks of one item in groups. */
static void run_groups(struct cpu *c, const struct quant_item *q, enum way way)
{
    bool columns = q->lines == QUANT_COLUMNS;
    int n_blocks = columns ? q->rows / q->group : q->rows;
    size_t n_line = (size_t)q->cols * (columns ? (size_t)q->group + 1 : 1);
    float *line = cpu_scratch(c, &c->tile[cpu_thread()], n_line * sizeof(*line));

#pragma omp for schedule(static) nowait
    for (int b = 0; b < n_blocks; b++) {
        if (line && columns)
            column_groups(c, q, way, b, line);
        else if (line)
            row_groups(c, q, way, b, line);
    }
}

static void run_items(struct cpu *c, const struct quant_item *item, int n_items, enum way way)
{
#pragma omp parallel num_threads(c->n_threads)
    {
        if (way == PACK)
            run_heads(c, item, n_items);
        for (int i = 0; i < n_items; i++)
            (item[i].row.format == QUANT_MINMAX ? run_groups : run_rows)(c, &item[i], way);
    }
}

void cpu_quantise(struct backend *be, const struct quant_item *item, int n_items)
{
    run_items(cpu_of(be), item, n_items, PACK);
}

void cpu_dequantise(struct backend *be, const struct quant_item *item, int n_items)
{
    run_items(cpu_of(be), item, n_items, UNPACK);
}

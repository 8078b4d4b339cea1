/* cpu_weight.c - packs weights into the layout that oneDNN multiplies fastest, or into the layout of our own products.
 *
 * The rows of all host matrices are packed in chunks: all threads widen a chunk to f32, then one oneDNN reorder writes
 * it into its columns of the packed matrix in the backend's dtype. So packing needs one chunk of extra memory.
 */
#include "kernels/cpu/cpu_matmul_internal.h"

#include "kernels/cpu/cpu_rows.h"
#include "kernels/host.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum {
    TYPICAL_ROWS = 512,     // of a product; the layout is the same for every number of rows
    CHUNK_BYTES = 16 << 20, // of f32 rows
    CHUNK_ROWS = 64,        // a chunk is a multiple: columns come in blocks of 64 or a divisor
    /* With this many columns oneDNN 2.6 configures AMX tiles for 64: a trap or wrong numbers. No other number does
     * it. */
    BROKEN_IN_AMX = 63,
};

const char *weight_code(const struct matmul *m, const struct packed_weight *w, struct desc *layout)
{
    int64_t in = w->base.in, out = w->base.out;
    dnnl_data_type_t type = matmul_type(w->type);
    struct desc a = { 0 }, b = { 0 }, c = { 0 };
    dnnl_primitive_desc_t pd = NULL;
    const char *name = NULL;

    dnnl_status_t status = desc_strided(&a, type, (int64_t[]){ TYPICAL_ROWS, in }, (int64_t[]){ in, 1 });
    if (status == dnnl_success)
        status = desc_any(&b, type, (int64_t[]){ in, out });
    if (status == dnnl_success)
        status = desc_strided(&c, dnnl_f32, (int64_t[]){ TYPICAL_ROWS, out }, (int64_t[]){ out, 1 });
    if (status == dnnl_success)
        status = matmul_desc(&pd, m->engine, &a, &b, NULL, &c, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    if (status == dnnl_success && layout)
        status = desc_query(layout, pd, dnnl_query_weights_md, 0);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    desc_release(&a);
    desc_release(&b);
    desc_release(&c);
    /* oneDNN's "gemm" code in bf16, without bf16 instructions, is four times slower than f32. */
    bool slow = status != dnnl_success || strncmp(name, "ref", 3) == 0 ||
                (w->type == DTYPE_BF16 && strncmp(name, "brg", 3) != 0);
    return slow ? NULL : name;
}

const char *matmul_code(struct matmul *m, int out, int in, enum dtype type)
{
    const struct packed_weight w = { .base = { .out = out, .in = in }, .type = type };
    return weight_code(m, &w, NULL);
}

/* Plain rows for code without its own layout, and for products that are made panel by panel. */
dnnl_status_t weight_layout(const struct matmul *m, struct packed_weight *w)
{
    int64_t in = w->base.in, out = w->base.out;
    const char *name = weight_code(m, w, &w->desc);

    if (m->row_block == 0 && name && strncmp(name, "brg", 3) == 0)
        return dnnl_success;
    desc_release(&w->desc);
    return desc_strided(&w->desc, matmul_type(w->type), (int64_t[]){ in, out },
                        (int64_t[]){ weight_pitch(w->base.out), 1 });
}

/* Copies f32 rows (n, in) into columns first .. first + n - 1 of a packed weight. */
static dnnl_status_t reorder(struct matmul *m, struct packed_weight *w, const float *rows, int first, int n)
{
    struct desc stored = { 0 }, part = { 0 };
    dnnl_memory_t from = NULL, to = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t run = NULL;
    int64_t in = w->base.in;

    dnnl_status_t status = desc_strided(&stored, dnnl_f32, (int64_t[]){ in, n }, (int64_t[]){ 1, in });
    if (status == dnnl_success)
        status = desc_columns(&part, &w->desc, first, n);
    if (status == dnnl_success)
        status = dnnl_memory_create(&from, DESC(&stored), m->engine, matmul_writable(rows));
    if (status == dnnl_success)
        status = dnnl_memory_create(&to, DESC(&part), m->engine, w->base.at);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(&pd, DESC(&stored), m->engine, DESC(&part), m->engine, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&run, pd);
    if (status == dnnl_success) {
        const dnnl_exec_arg_t arg[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
        status = dnnl_primitive_execute(run, m->thread[0].stream, 2, arg);
    }
    if (status == dnnl_success)
        status = dnnl_stream_wait(m->thread[0].stream);
    dnnl_primitive_destroy(run);
    dnnl_primitive_desc_destroy(pd);
    dnnl_memory_destroy(to);
    dnnl_memory_destroy(from);
    desc_release(&part);
    desc_release(&stored);
    return status;
}

/* Rows of a chunk; all rows where the layout cannot be cut. */
static int chunk_rows(const struct packed_weight *w)
{
    size_t fit = CHUNK_BYTES / ((size_t)w->base.in * sizeof(float)) / CHUNK_ROWS * CHUNK_ROWS;
    int n = fit < CHUNK_ROWS ? CHUNK_ROWS : fit < (size_t)w->base.out ? (int)fit : w->base.out;
    struct desc part = { 0 };

    if (n >= w->base.out)
        return w->base.out;
    dnnl_status_t status = desc_columns(&part, &w->desc, n, w->base.out - n < n ? w->base.out - n : n);
    desc_release(&part);
    return status == dnnl_success ? n : w->base.out;
}

/* to (in) = row `row` of the host matrices, counted through all of them. */
static void widen_row(const struct row_ops *rows, float *to, const struct mat *part, int row)
{
    for (; row >= part->rows; part++)
        row -= part->rows;
    size_t at = (size_t)row * (size_t)part->pitch * dtype_size(part->type);
    rows->widen(to, (const char *)part->at + at, part->type, part->cols);
}

/* to (n, in) = rows first .. first + n - 1 of the host matrices. */
static void widen_rows(const struct matmul *m, float *to, const struct mat *host, int first, int n)
{
    const struct row_ops *rows = rows_best();
#pragma omp parallel for schedule(static) num_threads(m->n_threads)
    for (int i = 0; i < n; i++)
        widen_row(rows, to + (size_t)i * (size_t)host[0].cols, host, first + i);
}

static dnnl_status_t pack(struct matmul *m, struct packed_weight *w, const struct mat *host)
{
    int chunk = chunk_rows(w), before = omp_get_max_threads();
    float *rows = host_alloc((size_t)chunk * (size_t)w->base.in * sizeof(*rows));
    dnnl_status_t status = rows ? dnnl_success : dnnl_out_of_memory;

    omp_set_num_threads(m->n_threads);
    for (int first = 0; first < w->base.out && status == dnnl_success; first += chunk) {
        int n = w->base.out - first < chunk ? w->base.out - first : chunk;
        widen_rows(m, rows, host, first, n);
        status = reorder(m, w, rows, first, n);
    }
    omp_set_num_threads(before);
    free(rows);
    return status;
}

/* ---- for products of our own --------------------------------------------- */

/* A thread's memory: a row in f32, and the same row in bf16. */
static size_t row_bytes(const struct packed_weight *w)
{
    return (size_t)w->base.in * (sizeof(float) + sizeof(uint16_t));
}

static dnnl_status_t pack_ours(struct matmul *m, struct packed_weight *w, const struct mat *host)
{
    const struct row_ops *rows = rows_best();
    int in = w->base.in, panels = (w->base.out + PRODUCT_COLS - 1) / PRODUCT_COLS;
    char *memory = host_alloc((size_t)m->n_threads * row_bytes(w));

    if (!memory)
        return dnnl_out_of_memory;
#pragma omp parallel for schedule(static) num_threads(m->n_threads)
    for (int panel = 0; panel < panels; panel++) {
        float *wide = (float *)(void *)(memory + (size_t)omp_get_thread_num() * row_bytes(w));
        uint16_t *narrow = (uint16_t *)(void *)(wide + in);
        for (int row = panel * PRODUCT_COLS; row < (panel + 1) * PRODUCT_COLS; row++) {
            if (row < w->base.out)
                widen_row(rows, wide, host, row);
            else
                memset(wide, 0, (size_t)in * sizeof(*wide));
            rows->narrow(narrow, wide, DTYPE_BF16, in);
            product_pack_row(w->base.at, row, narrow, in);
        }
    }
    free(memory);
    return dnnl_success;
}

/* ---- a weight ------------------------------------------------------------ */

struct weight *matmul_pack(struct matmul *m, const struct mat *host, int n_parts, enum dtype type, struct err *err)
{
    struct packed_weight *w = calloc(1, sizeof(*w));
    if (!w) {
        err_nomem(err);
        return NULL;
    }
    w->type = type;
    w->base.in = host[0].cols;
    for (int p = 0; p < n_parts; p++)
        w->base.out += host[p].rows;
    if (m->has_amx && type == DTYPE_BF16 && w->base.in == BROKEN_IN_AMX) {
        err_set(err, ERR_DEVICE, "oneDNN cannot multiply rows of %d numbers in bf16 with AMX; use --dtype f32",
                BROKEN_IN_AMX);
        matmul_weight_free(&w->base);
        return NULL;
    }
    bool ours = matmul_is_ours(m, w->base.in, type);
    dnnl_status_t status = ours ? dnnl_success : weight_layout(m, w);
    if (status == dnnl_success) {
        w->base.at = host_alloc(ours ? product_weight_bytes(w->base.out, w->base.in)
                                     : dnnl_memory_desc_get_size(DESC(&w->desc)));
        status = !w->base.at ? dnnl_out_of_memory : ours ? pack_ours(m, w, host) : pack(m, w, host);
    }
    if (status == dnnl_success)
        return &w->base;
    matmul_failure(err, "pack a weight", status);
    matmul_weight_free(&w->base);
    return NULL;
}

struct weight_bytes matmul_weight_bytes(struct matmul *m, int out, int in, enum dtype type)
{
    struct packed_weight w = { .base = { .out = out, .in = in }, .type = type };
    struct weight_bytes bytes = { 0 };

    if (matmul_is_ours(m, in, type)) {
        bytes.kept = product_weight_bytes(out, in) + sizeof(w);
        bytes.making = (size_t)m->n_threads * row_bytes(&w);
    } else if (weight_layout(m, &w) == dnnl_success) {
        bytes.kept = dnnl_memory_desc_get_size(DESC(&w.desc)) + sizeof(w);
        bytes.making = (size_t)chunk_rows(&w) * (size_t)in * sizeof(float);
    }
    desc_release(&w.desc);
    return bytes;
}

void matmul_weight_free(struct weight *weight)
{
    struct packed_weight *w = (struct packed_weight *)weight;

    if (!w)
        return;
    desc_release(&w->desc);
    free(w->base.at);
    free(w);
}

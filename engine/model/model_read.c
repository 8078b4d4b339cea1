/* model_read.c - the numbers of a tensor: a view into the file, or a copy row by row.
 *
 * Threads share the rows of a tensor. Each row is checked for non-finite numbers right after it is written, while it is
 * in the CPU's cache; the first one in the file is reported, whatever the number of threads.
 */
#include "base/parallel.h"
#include "base/unconst.h"
#include "engine/model/model_internal.h"
#include "kernels/backend.h"
#include "codes/half.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

enum { SHARE = 1 << 16 }; // elements that a thread takes at once, in whole rows

/* Row r of a tensor that rotates neighbours (2j, 2j + 1), as llama.cpp stores q and k, belongs at row j or at
 * j + head_dim / 2 of its head when halves are rotated. */
static int64_t unpaired_row(int64_t r, int64_t head_dim)
{
    int64_t in_head = r % head_dim;

    return r - in_head + in_head / 2 + (in_head & 1) * (head_dim / 2);
}

/* A tensor's type for a backend: its own, or f32 for one that only dequant() or packed_read() knows. */
static enum dtype dtype_of(const struct tensor *t)
{
    if (t->packed)
        return DTYPE_F32;
    return t->type == WEIGHT_F16 ? DTYPE_F16 : t->type == WEIGHT_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

/* A tensor and the matrix for its rows; out->at NULL: rows are only checked, in the file. */
struct rows {
    struct tensor t;
    const struct mat *out;
    int64_t share;            // rows
    atomic_int_least64_t bad; // the first element that is not finite; rows * cols: none
};

/* A row rounded to bf16, a few blocks at a time. */
static void round_row(const struct tensor *t, const char *from, size_t cols, char *to)
{
    enum { SOME = 1024 }; // whole blocks of every type
    float x[SOME];
    uint16_t rounded[SOME];

    for (size_t c = 0; c < cols; c += SOME) {
        size_t n = cols - c < SOME ? cols - c : SOME;
        dequant(t->type, from + c / (size_t)weight_block(t->type) * weight_block_bytes(t->type), n, x);
        for (size_t i = 0; i < n; i++)
            rounded[i] = bf16_from_f32(x[i]);
        memcpy(to + c * sizeof(*rounded), rounded, n * sizeof(*rounded));
    }
}

/* Writes row r of the tensor and checks it; the number of elements before the first non-finite one. */
static size_t do_row(const struct rows *x, int64_t r)
{
    const struct tensor *t = &x->t;
    const struct mat *out = x->out;
    const size_t cols = (size_t)out->cols, bytes = cols / (size_t)weight_block(t->type) * weight_block_bytes(t->type);

    if (!t->at) {
        synthetic_row(t, r, out->type, (char *)out->at + (size_t)r * (size_t)out->pitch * dtype_size(out->type));
        return cols;
    }
    const char *from = (const char *)t->at + (size_t)r * bytes;
    if (!out->at)
        return weight_finite(t->type, from, cols);
    if (t->paired_heads)
        r = unpaired_row(r, out->rows / t->paired_heads);
    char *to = (char *)out->at + (size_t)r * (size_t)out->pitch * dtype_size(out->type);
    if (out->type == DTYPE_BF16 && t->type != WEIGHT_BF16) {
        round_row(t, from, cols, to);
        return weight_finite(WEIGHT_BF16, to, cols);
    }
    if (out->type != DTYPE_F32) {
        memcpy(to, from, bytes);
        return weight_finite(t->type, to, cols);
    }
    dequant(t->type, from, cols, (float *)(void *)to);
    return weight_finite(WEIGHT_F32, to, cols);
}

/* Notes the first element that is not finite. */
static void note_bad(struct rows *x, int64_t at)
{
    int64_t bad = x->bad;

    while (at < bad && !atomic_compare_exchange_weak(&x->bad, &bad, at))
        ;
}

/* Writes n numbers of row r from column c on. */
static void put_numbers(struct rows *x, int64_t r, int64_t c, const float *from, size_t n)
{
    const struct mat *out = x->out;
    char *to = (char *)out->at + (size_t)(r * out->pitch + c) * dtype_size(out->type);
    size_t finite;

    if (out->type == DTYPE_BF16) {
        uint16_t *rounded = (uint16_t *)(void *)to;
        for (size_t i = 0; i < n; i++)
            rounded[i] = bf16_from_f32(from[i]);
        finite = weight_finite(WEIGHT_BF16, to, n);
    } else {
        memcpy(to, from, n * sizeof(*from));
        finite = weight_finite(WEIGHT_F32, from, n);
    }
    if (finite < n)
        note_bad(x, r * out->cols + c + (int64_t)finite);
}

/* Rows of codes with scales, tile by tile. */
static void do_packed(struct rows *x, int64_t first, int64_t end)
{
    const struct packed *p = x->t.packed;
    const int64_t cols = x->out->cols;
    const int high = packed_tile_rows(p), wide = PACKED_TILE / high;
    float tile[PACKED_TILE];

    for (int64_t r = first; r < end; r += high)
        for (int64_t c = 0; c < cols; c += wide) {
            int n_rows = end - r < high ? (int)(end - r) : high, n_cols = cols - c < wide ? (int)(cols - c) : wide;
            packed_read(p, (struct packed_tile){ x->t.first_row + r, c, n_rows, n_cols }, tile);
            for (int i = 0; i < n_rows; i++)
                put_numbers(x, r + i, c, tile + i * n_cols, (size_t)n_cols);
        }
}

static void do_share(void *arg, int share)
{
    struct rows *x = arg;
    const int64_t cols = x->out->cols, first = share * x->share;
    const int64_t end = first + x->share < x->out->rows ? first + x->share : x->out->rows;

    if (x->t.packed) {
        do_packed(x, first, end);
        return;
    }
    for (int64_t r = first; r < end; r++) {
        int64_t finite = (int64_t)do_row(x, r);
        if (finite < cols)
            note_bad(x, r * cols + finite);
    }
}

static int do_rows(const struct model *m, struct rows *x, struct err *err)
{
    const int64_t rows = x->out->rows, cols = x->out->cols;

    const int64_t high = x->t.packed ? packed_tile_rows(x->t.packed) : 1;
    x->share = (SHARE / cols + high) / high * high;
    x->bad = rows * cols;
    parallel_do(m->n_threads ? m->n_threads : parallel_threads(), (int)((rows + x->share - 1) / x->share), do_share, x);
    int64_t bad = x->bad;
    if (bad == rows * cols)
        return 0;
    return err_set(err, ERR_FORMAT, "'%s': tensor '%s' is not finite in row %lld, column %lld", m->path, x->t.name,
                   (long long)(bad / cols), (long long)(bad % cols));
}

int model_map(const struct model *m, enum tensor_role role, int index, struct mat *out, struct err *err)
{
    const struct tensor_shape shape = model_shape(&m->config, role);
    struct tensor t;

    if (model_find(m, role, index, &t, err))
        return err->code;
    *out = (struct mat){ NULL, dtype_of(&t), shape.rows, shape.cols, shape.cols };
    if (t.at && !t.packed && weight_block(t.type) == 1 && !t.paired_heads &&
        (uintptr_t)t.at % dtype_size(out->type) == 0)
        out->at = unconst(t.at);
    return 0;
}

int model_view(const struct model *m, enum tensor_role role, int index, struct mat *out, struct err *err)
{
    struct mat checked;
    struct rows x = { .out = &checked };

    if (model_find(m, role, index, &x.t, err) || model_map(m, role, index, out, err))
        return err->code;
    checked = *out;
    checked.at = NULL;
    if (out->at && do_rows(m, &x, err)) {
        out->at = NULL;
        return err->code;
    }
    return 0;
}

int model_read_mat(const struct model *m, enum tensor_role role, int index, const struct mat *out, struct err *err)
{
    const struct mat column = { out->at, out->type, out->cols, 1, 1 };
    struct rows x = { .out = out };

    if (model_find(m, role, index, &x.t, err))
        return err->code;
    assert(out->at && (out->type != DTYPE_F16 || x.t.type == WEIGHT_F16));
    if (x.t.paired_heads && x.t.n_dims == 1) { // a bias: its numbers are reordered like the rows of its matrix
        if (weight_block(x.t.type) > 1)
            return err_set(err, ERR_FORMAT, "'%s': tensor '%s' is a bias in %s, which is not supported", m->path,
                           x.t.name, weight_type_name(x.t.type));
        x.out = &column;
    }
    return do_rows(m, &x, err);
}

int model_read(const struct model *m, enum tensor_role role, int index, float *out, struct err *err)
{
    const struct tensor_shape shape = model_shape(&m->config, role);
    const struct mat mat = { out, DTYPE_F32, shape.rows, shape.cols, shape.cols };
    const uint64_t norms = ROLE(TENSOR_ATTENTION_NORM) | ROLE(TENSOR_Q_NORM) | ROLE(TENSOR_K_NORM) |
                           ROLE(TENSOR_AFTER_ATTENTION) | ROLE(TENSOR_MLP_NORM) | ROLE(TENSOR_AFTER_MLP) |
                           ROLE(TENSOR_NORM);

    if (model_read_mat(m, role, index, &mat, err))
        return err->code;
    for (int i = 0; i < shape.cols && m->json && m->family->gemma && norms >> role & 1; i++)
        out[i] += 1;
    return 0;
}

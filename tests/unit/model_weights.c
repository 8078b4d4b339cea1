/* The numbers of a model's tensors: views into the file, copies in the file's type or as f32, and that a number which
 * is not finite is refused by name and place. The tiny model's tensors are replaced here by others of every type. */
#include "engine/model/model_internal.h"
#include "kernels/backend.h"
#include "codes/half.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct model *open_tiny(const char *path)
{
    struct err err;
    struct model *m = model_open(path, &err);

    cr_assert_not_null(m, "run from the top folder: %s", err.msg);
    return m;
}

/* A number of a matrix of any type as f32. */
static float at(const struct mat *x, int row, int col)
{
    const char *p = (const char *)x->at + (size_t)(row * x->pitch + col) * dtype_size(x->type);
    uint16_t half;
    float f;

    memcpy(&half, p, sizeof(half));
    if (x->type != DTYPE_F32)
        return x->type == DTYPE_F16 ? f16_to_f32(half) : bf16_to_f32(half);
    memcpy(&f, p, sizeof(f));
    return f;
}

/* Every role: the view where there is one, and otherwise the copy in its type, against the f32 copy. */
static int compare_views(const struct model *m)
{
    static float want[271 * 32], copy[271 * 40];
    struct err err;
    int n_views = 0;

    for (int i = 0; i < TENSOR_ROLES; i++) {
        enum tensor_role role = (enum tensor_role)i;
        struct mat x;
        if (!model_has(model_config(m), role))
            continue;
        cr_assert_eq(model_read(m, role, 0, want, &err), 0, "%s", err.msg);
        cr_assert_eq(model_view(m, role, 0, &x, &err), 0, "%s", err.msg);
        n_views += x.at != NULL;
        if (!x.at) {
            x.at = copy;
            x.pitch = x.cols + 8; /* rows with a gap after each */
            cr_assert_eq(model_read_mat(m, role, 0, &x, &err), 0, "%s", err.msg);
        }
        for (int r = 0; r < x.rows; r++)
            for (int c = 0; c < x.cols; c++)
                cr_assert_eq(at(&x, r, c), want[r * x.cols + c], "role %d, row %d, column %d", i, r, c);
    }
    return n_views;
}

Test(model_weights, views_and_copies_say_the_same)
{
    struct model *folder = open_tiny("tests/data/tiny"), *gguf = open_tiny("tests/data/tiny.gguf");

    cr_assert_eq(compare_views(folder), 12);
    cr_assert_eq(compare_views(gguf), 5); /* three norms, attn_output in F16 and ffn_down in BF16 */
    model_close(folder);
    model_close(gguf);
}

/* The tensor of a role, which may be changed: a test's own copy of the table. */
static struct tensor *tensor_of(const struct model *m, enum tensor_role role)
{
    char name[MODEL_TENSOR_NAME];

    model_tensor_name(name, m, role == TENSOR_HEAD ? TENSOR_EMBEDDING : role, 0);
    return &m->tensor[map_find(&m->names, name, strlen(name))];
}

/* Rows of q in pairs: they change places and keep their type. */
Test(model_weights, paired_rows_are_copied_in_their_type)
{
    static uint16_t file[32 * 32];
    struct model *m = open_tiny("tests/data/tiny.gguf");
    struct tensor *t = tensor_of(m, TENSOR_Q);
    struct err err;
    struct mat x;

    for (int i = 0; i < 32 * 32; i++)
        file[i] = bf16_from_f32((float)(i / 32));
    *t = (struct tensor){ t->name, WEIGHT_BF16, 2, { 32, 32 }, file, sizeof(file), 2, NULL, 0 };
    cr_assert_eq(model_view(m, TENSOR_Q, 0, &x, &err), 0, "%s", err.msg);
    cr_assert(!x.at && x.type == DTYPE_BF16 && x.rows == 32 && x.cols == 32 && x.pitch == 32);
    uint16_t copy[32 * 32];
    x.at = copy;
    cr_assert_eq(model_read_mat(m, TENSOR_Q, 0, &x, &err), 0, "%s", err.msg);
    for (int r = 0; r < 32; r++) { /* row j of a head was row 2j, and row j + 8 was row 2j + 1 */
        int in_head = r % 16, was = r - in_head + (in_head < 8 ? 2 * in_head : 2 * (in_head - 8) + 1);
        cr_assert_eq(at(&x, r, 31), (float)was, "row %d is %g, not %d", r, (double)at(&x, r, 31), was);
    }
    t->paired_heads = 0;
    cr_assert_eq(model_view(m, TENSOR_Q, 0, &x, &err), 0, "%s", err.msg);
    cr_assert_eq(x.at, file);
    model_close(m);
}

/* A place in the file that a number of the type may not have is no view. */
Test(model_weights, a_view_is_aligned)
{
    static _Alignas(8) char bytes[4 * 32 + 8];
    static const struct {
        enum weight_type type;
        size_t offset;
        bool fits;
    } at[] = {
        { WEIGHT_F32, 0, true },  { WEIGHT_F32, 1, false }, { WEIGHT_F32, 2, false },  { WEIGHT_F32, 4, true },
        { WEIGHT_F16, 1, false }, { WEIGHT_F16, 2, true },  { WEIGHT_BF16, 3, false }, { WEIGHT_BF16, 6, true }
    };
    struct model *m = open_tiny("tests/data/tiny.gguf");
    struct tensor *t = tensor_of(m, TENSOR_NORM);

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct err err;
        struct mat x;
        float out[32];
        *t = (struct tensor){ t->name, at[i].type, 1, { 32 }, bytes + at[i].offset, 0, 0, NULL, 0 };
        cr_assert_eq(model_view(m, TENSOR_NORM, 0, &x, &err), 0, "%s", err.msg);
        cr_assert_eq(x.at != NULL, at[i].fits, "type %d at %zu", at[i].type, at[i].offset);
        cr_assert_eq(model_read(m, TENSOR_NORM, 0, out, &err), 0, "%s", err.msg);
    }
    model_close(m);
}

/* ---- numbers that are not finite ------------------------------------------- */

enum { ROWS = 4096, COLS = 32 }; // enough rows for several threads

/* Row `row` of ffn_up in a type, its element or block `i` given by bits; "" or what reading and viewing say. */
static const char *said(enum weight_type type, int row, int i, uint32_t bits, struct err *err)
{
    const size_t block = weight_block_bytes(type), row_bytes = COLS / (size_t)weight_block(type) * block;
    struct model *m = open_tiny("tests/data/tiny.gguf");
    char *bytes = calloc(ROWS, row_bytes);
    float *out = malloc(sizeof(float) * ROWS * COLS);
    struct tensor *t = tensor_of(m, TENSOR_UP);
    struct err viewing;
    struct mat x;

    memcpy(bytes + (size_t)row * row_bytes + (size_t)i * block, &bits, block < 4 ? block : 4);
    *t = (struct tensor){ t->name, type, 2, { ROWS, COLS }, bytes, ROWS * row_bytes, 0, NULL, 0 };
    m->config.d_ff = ROWS;
    int code = model_read(m, TENSOR_UP, 0, out, err);
    int view_code = model_view(m, TENSOR_UP, 0, &x, &viewing);
    cr_assert_eq(view_code, weight_block(type) == 1 ? code : 0);
    if (view_code)
        cr_assert_str_eq(viewing.msg, err->msg);
    free(bytes);
    free(out);
    model_close(m);
    if (!code)
        err_set(err, ERR_FAIL, "%s", "");
    return err->msg;
}

Test(model_weights, a_number_that_is_not_finite_is_refused_by_name_and_place)
{
    static const struct {
        enum weight_type type;
        uint32_t bits;
        bool finite;
    } at[] = {
        { WEIGHT_F32, 0x7f7fffff, true },  { WEIGHT_F32, 0xff7fffff, true },   { WEIGHT_F32, 0x00000001, true },
        { WEIGHT_F32, 0x7f800000, false }, { WEIGHT_F32, 0xff800000, false },  { WEIGHT_F32, 0x7fc00000, false },
        { WEIGHT_F32, 0xff800001, false }, { WEIGHT_F16, 0x7bff, true },       { WEIGHT_F16, 0x8001, true },
        { WEIGHT_F16, 0x7c00, false },     { WEIGHT_F16, 0xfc00, false },      { WEIGHT_F16, 0x7e00, false },
        { WEIGHT_BF16, 0x7f7f, true },     { WEIGHT_BF16, 0x7f80, false },     { WEIGHT_BF16, 0xff80, false },
        { WEIGHT_BF16, 0xffc0, false },    { WEIGHT_Q8_0, 0x01007bff, true },  { WEIGHT_Q8_0, 0x01007c00, false },
        { WEIGHT_Q4_0, 0x7e00, false },    { WEIGHT_Q4_1, 0x7c000000, false }, { WEIGHT_Q4_1, 0x7c00, false },
        { WEIGHT_Q5_0, 0x7c00, false },    { WEIGHT_Q5_1, 0x7e000000, false }, { WEIGHT_Q5_1, 0x7bff, true },
    };
    static const int rows[] = { 0, 1, ROWS / 2, ROWS - 1 };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
        for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
            struct err err;
            char want[160];
            int place = weight_block(at[i].type) == 1 ? COLS - 1 : 0;
            const char *got = said(at[i].type, rows[r], place, at[i].bits, &err);
            snprintf(want, sizeof(want),
                     "'tests/data/tiny.gguf': tensor 'blk.0.ffn_up.weight' is not finite in row %d, column %d", rows[r],
                     place);
            cr_assert_str_eq(got, at[i].finite ? "" : want, "%s %x: %s", weight_type_name(at[i].type), at[i].bits, got);
        }
}

/* Of several the first in the file, whichever thread finds it. */
Test(model_weights, the_first_of_several_is_named)
{
    static float file[ROWS * COLS];
    struct model *m = open_tiny("tests/data/tiny.gguf");
    struct tensor *t = tensor_of(m, TENSOR_UP);
    struct err err;
    struct mat x;

    file[(ROWS - 1) * COLS] = NAN;
    file[1001 * COLS] = NAN;
    file[1000 * COLS + 7] = INFINITY;
    file[1000 * COLS + 6] = -INFINITY;
    file[3000 * COLS] = NAN;
    *t = (struct tensor){ t->name, WEIGHT_F32, 2, { ROWS, COLS }, file, sizeof(file), 0, NULL, 0 };
    m->config.d_ff = ROWS;
    cr_assert_eq(model_view(m, TENSOR_UP, 0, &x, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "in row 1000, column 6"), "%s", err.msg);
    cr_assert_null(x.at);
    cr_assert_eq(model_map(m, TENSOR_UP, 0, &x, &err), 0, "numbers are not read: %s", err.msg);
    cr_assert_eq(x.at, file);
    model_close(m);
}

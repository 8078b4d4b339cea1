/* The most likely token: ids, margins, ties, and rows that are not finite among others that are. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of x, rows of the output matrix, columns of both. */
static const struct head {
    int rows, vocab, width;
} heads[] = { { 1, 1, 8 },     { 1, 2, 3 },      { 3, 49, 64 },   { 5, 1000, 30 },  { 64, 257, 48 }, { 65, 7, 16 },
              { 512, 33, 12 }, { 600, 131, 20 }, { 2, 4097, 64 }, { 17, 8191, 24 }, { 3, 9000, 8 } };
enum { N_HEADS = sizeof(heads) / sizeof(*heads) };

/* Small whole numbers, whose products and sums are exact in every dtype and order; so many logits are equal. */
static void make_whole(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = rintf(x[i]);
}

struct operands {
    float *x, *head; // on the host
};

static struct operands operands_of(struct head h, bool whole)
{
    size_t n_x = (size_t)(h.rows * h.width), n_head = (size_t)(h.vocab * h.width);
    struct operands o = { host_numbers("x", n_x), host_numbers("head", n_head) };

    if (whole) {
        make_whole(o.x, n_x);
        make_whole(o.head, n_head);
    }
    return o;
}

/* Back on the host; free it. */
static struct best *best_on(struct backend *be, struct head h, struct operands o)
{
    struct err err = { 0 };
    size_t bytes = (size_t)h.rows * sizeof(struct best);
    struct mat part = mat_of(o.head, h.vocab, h.width);
    struct weight *w = weight_from(be, &part);
    struct best *best = calloc((size_t)h.rows + 1, sizeof(*best)), guard = { 12345, 1, 2 };

    for (int t = 0; t <= h.rows; t++)
        best[t] = guard;
    void *x = stored_from(be, o.x, (size_t)(h.rows * h.width)), *out = bytes_from(be, best, bytes + sizeof(*best));
    be->best(be, out, stored_mat(be, x, h.rows, h.width), w);
    cr_assert_eq(be->read(be, best, out, bytes + sizeof(*best), &err), 0, "%s", err.msg);
    cr_assert_eq(best[h.rows].id, guard.id, "%s: something was written after row %d", be->name, h.rows);
    be->weight_free(be, w);
    be->free(be, x);
    be->free(be, out);
    return best;
}

static void operands_free(struct operands o)
{
    free(o.x);
    free(o.head);
}

static void same_best(const struct pair *p, struct head h, struct operands o, double eps)
{
    struct best *want = best_on(p->want, h, o), *got = best_on(p->got, h, o);

    for (int t = 0; t < h.rows; t++) {
        const struct best *w = &want[t], *g = &got[t];
        cr_assert_eq(g->id, w->id, "%s: row %d of %d, vocabulary %d: token %d, reference %d", p->name, t, h.rows,
                     h.vocab, g->id, w->id);
        if (w->id < 0)
            continue;
        cr_assert(fabsf(g->value - w->value) <= (float)eps * (1 + fabsf(w->value)), "%s: row %d: %g, reference %g",
                  p->name, t, (double)g->value, (double)w->value);
        cr_assert(g->second == w->second || fabsf(g->second - w->second) <= (float)eps * (1 + fabsf(w->second)),
                  "%s: row %d: second %g, reference %g", p->name, t, (double)g->second, (double)w->second);
    }
    free(want);
    free(got);
}

static void check_best(const struct pair *p)
{
    for (int i = 0; i < N_HEADS; i++)
        for (int whole = 0; whole < 2; whole++) {
            struct operands o = operands_of(heads[i], whole);
            same_best(p, heads[i], o, whole ? 0 : 1e-5);
            operands_free(o);
        }
}

Test(kernels, best)
{
    each_pair(check_best);
}

/* Logits 1 3 -2 3, then the same with the 3s apart by one unit, then all equal; one token alone has no second. */
static void check_by_hand(const struct pair *p)
{
    float x[] = { 1, 2, 0 }, head[] = { 1, 3, -2, 3 };
    struct best *b = best_on(p->got, (struct head){ 3, 4, 1 }, (struct operands){ x, head });

    cr_assert(b[0].id == 1 && b[0].value == 3 && b[0].second == 3, "%s", p->name);
    cr_assert(b[1].id == 1 && b[1].value == 6 && b[1].second == 6, "%s", p->name);
    cr_assert(b[2].id == 0 && b[2].value == 0 && b[2].second == 0, "%s", p->name);
    free(b);
    head[3] = 5;
    b = best_on(p->got, (struct head){ 1, 4, 1 }, (struct operands){ x, head });
    cr_assert(b[0].id == 3 && b[0].value == 5 && b[0].second == 3, "%s", p->name);
    free(b);
    b = best_on(p->got, (struct head){ 1, 1, 1 }, (struct operands){ x, head });
    cr_assert(b[0].id == 0 && b[0].value == 1 && b[0].second == -INFINITY, "%s", p->name);
    free(b);
}

Test(kernels, best_by_hand)
{
    each_pair(check_by_hand);
}

/* nan, inf and what overflows f32 make their own row -1 and no other. */
static void check_not_finite(const struct pair *p)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY, 3e38f };

    for (int i = 0; i < N_HEADS; i++) {
        struct head h = heads[i];
        for (int b = 0; b < 4; b++) {
            struct operands o = operands_of(h, true);
            int row = (h.rows - 1) / (1 + b);
            for (size_t j = 0; j < (size_t)(h.vocab * h.width); j++)
                o.head[j] = o.head[j] == 0 ? 2 : 2 * o.head[j];
            o.x[row * h.width + h.width / 2] = bad[b];
            struct best *got = best_on(p->got, h, o);
            cr_assert_eq(got[row].id, -1, "%s: row %d of %d with %g has token %d", p->name, row, h.rows, (double)bad[b],
                         got[row].id);
            free(got);
            same_best(p, h, o, 0);
            operands_free(o);
        }
    }
}

Test(kernels, best_reports_rows_that_are_not_finite)
{
    each_pair(check_not_finite);
}

/* A single bad number in the output matrix, in its first, last or some row, reaches every row of x. */
static void check_bad_head(const struct pair *p)
{
    for (int i = 0; i < N_HEADS; i++) {
        struct head h = heads[i];
        int rows[] = { 0, h.vocab / 2, h.vocab - 1 };
        for (int j = 0; j < 3; j++) {
            struct operands o = operands_of(h, true);
            o.head[rows[j] * h.width + h.width - 1] = NAN;
            struct best *got = best_on(p->got, h, o);
            for (int t = 0; t < h.rows; t++)
                cr_assert_eq(got[t].id, -1, "%s: row %d, nan in row %d of %d of the output matrix", p->name, t, rows[j],
                             h.vocab);
            free(got);
            operands_free(o);
        }
    }
}

Test(kernels, best_reports_a_bad_output_matrix)
{
    each_pair(check_bad_head);
}

/* The rows of a pass, and some of them alone. */
static void check_rows_alone(const struct pair *p)
{
    struct head h = { 600, 997, 64 };

    if (strcmp(p->got->name, "reference") == 0) // nothing in it knows more than one row
        return;
    struct operands o = operands_of(h, false);
    struct best *all = best_on(p->got, h, o);
    static const int some[] = { 1, 2, 3, 5, 8, 63, 64, 65, 128, 300, 511, 513 };
    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
        int first = i % 2 ? 600 - some[i] : (int)i;
        struct operands part = { o.x + first * h.width, o.head };
        struct best *b = best_on(p->got, (struct head){ some[i], h.vocab, h.width }, part);
        for (int t = 0; t < some[i]; t++) {
            const struct best *a = &all[first + t];
            cr_assert(b[t].id == a->id && b[t].value == a->value && b[t].second == a->second,
                      "%s: row %d of %d: %d %.9g %.9g, among 600: %d %.9g %.9g", p->name, t, some[i], b[t].id,
                      (double)b[t].value, (double)b[t].second, a->id, (double)a->value, (double)a->second);
        }
        free(b);
    }
    free(all);
    operands_free(o);
}

Test(kernels, best_rows_do_not_know_each_other)
{
    each_pair(check_rows_alone);
}

Test(kernels, best_rows_do_not_know_each_other_on_many_threads)
{
    on_many_threads(check_rows_alone);
}

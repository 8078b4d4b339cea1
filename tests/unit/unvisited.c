/* unvisited.c - profiler/run/unvisited.c: sizes to the byte, times that a fit must find again, what is measured
 * stays. */
#include "methods/method.h"
#include "profiler/run/unvisited.h"
#include "variants/sizes.h"

#include <criterion/criterion.h>
#include <math.h>

enum { C = 5, V = 4, NONE = 0, HALF = 1, KIVI = 2, RAGGED = 3 };
static const struct kv_shape shape = { 4, 6, 2, 64, .dtype = DTYPE_F32 };

/* Three contexts of 100, 200, 400 tokens were run, two of 300 and 800 were not. */
static void make(struct table *t)
{
    static const int tokens[C] = { 100, 200, 400, 300, 800 };
    static const char *const name[V] = { "none", "knorm:drop=0.5", "kivi:bits=2", "adakv+snapkv:drop=0.5+kivi:bits=2" };
    struct err err;

    cr_assert_eq(table_alloc(t, C, V, 0, &err), 0);
    for (int v = 0; v < V; v++)
        t->config_name[v] = name[v];
    for (int c = 0; c < C; c++) {
        double n = tokens[c];
        t->n_tokens[c] = tokens[c];
        t->kv_bytes[c] = kv_bytes(&shape, tokens[c]);
        if (c >= 3)
            continue;
        t->prefill_s[c] = 2e-3 * n + 5e-6 * n * n;
        t->question_s[c] = 0.01 + 1e-5 * n;
        for (int v = 0; v < V; v++) {
            size_t cell = table_cell(t, c, v);
            t->cell_bytes[cell] = 1000 + v;
            t->size_frac[cell] = t->keep_frac[cell] = 0.5;
            t->compress_s[cell] = 0;
            t->decompress_s[cell] = v == KIVI ? 1e-6 * n : 0;
            for (int b = 0; b < TABLE_BATCHES && v != HALF; b++)
                t->decode_s[b][cell] = (1 + b) * (0.02 + 1e-6 * n);
        }
    }
}

Test(unvisited, sizes_follow_from_the_method)
{
    struct table t;
    struct config config;
    struct err err;

    make(&t);
    cr_assert_eq(unvisited_sizes(&t, &shape), 2 * 3, "two contexts, all configs but the ragged quantised one");
    cr_assert_eq(t.cell_bytes[table_cell(&t, 0, KIVI)], 1000 + KIVI, "what was measured stays");
    cr_assert_eq(t.cell_bytes[table_cell(&t, 3, NONE)], t.kv_bytes[3]);
    cr_assert_eq(t.cell_bytes[table_cell(&t, 3, HALF)], t.kv_bytes[3] / 2);
    cr_assert_eq(config_parse(&config, "kivi:bits=2", &err), 0);
    cr_assert_eq(t.cell_bytes[table_cell(&t, 4, KIVI)], config_bytes_known(&config, &shape, 800));
    cr_assert_eq(t.size_frac[table_cell(&t, 4, HALF)], 0.5);
    cr_assert_eq(t.keep_frac[table_cell(&t, 4, KIVI)], 1);
    cr_assert_eq(t.cell_bytes[table_cell(&t, 4, RAGGED)], -1, "its size depends on the scores");
    cr_assert_eq(unvisited_sizes(&t, &shape), 0);
    table_release(&t);
}

Test(unvisited, times_by_a_fit)
{
    struct table t;

    make(&t);
    unvisited_sizes(&t, &shape);
    for (int i = 0; i < 2; i++) { // again gives the same
        unvisited_times(&t, &t);
        cr_assert_float_eq(t.prefill_s[3], 2e-3 * 300 + 5e-6 * 300 * 300, 1e-12);
        cr_assert_float_eq(t.prefill_s[4], 2e-3 * 800 + 5e-6 * 800 * 800, 1e-12);
        cr_assert_float_eq(t.question_s[4], 0.01 + 1e-5 * 800, 1e-12);
        cr_assert_float_eq(t.decompress_s[table_cell(&t, 4, KIVI)], 8e-4, 1e-12);
        cr_assert_eq(t.decompress_s[table_cell(&t, 4, HALF)], 0);
        cr_assert(isnan(t.decompress_s[table_cell(&t, 4, RAGGED)]), "without a size no time");
        cr_assert_float_eq(t.decode_s[0][table_cell(&t, 3, NONE)], 0.0203, 1e-12);
        cr_assert_float_eq(t.decode_s[2][table_cell(&t, 4, KIVI)], 3 * 0.0208, 1e-12);
        cr_assert(isnan(t.prefill_flop[4]) && isnan(t.decode_s[1][table_cell(&t, 4, HALF)]), "never measured");
        t.prefill_s[4] = 77;
    }
    cr_assert_eq(t.prefill_s[0], 2e-3 * 100 + 5e-6 * 100 * 100, "what was measured stays");
    table_release(&t);
}

/* One length says nothing of a square; a fit that would fall does not. */
Test(unvisited, few_points)
{
    struct table t;

    make(&t);
    for (int c = 1; c < 3; c++)
        for (int v = 0; v < V; v++)
            t.compress_s[table_cell(&t, c, v)] = (double)NAN;
    unvisited_times(&t, &t);
    cr_assert_float_eq(t.prefill_s[4], 0.25 / 100 * 800, 1e-12);
    table_release(&t);
    make(&t);
    t.prefill_s[0] = 1, t.prefill_s[1] = 1.5, t.prefill_s[2] = 2; // slower and slower growth
    unvisited_times(&t, &t);
    cr_assert_gt(t.prefill_s[4], t.prefill_s[3]);
    table_release(&t);
}

Test(unvisited, times_of_other_contexts)
{
    struct table t, other;

    make(&t);
    make(&other);
    for (size_t i = 0; i < table_n_cells(&t); i++)
        t.compress_s[i] = (double)NAN;
    unvisited_times(&t, &t);
    cr_assert_eq(t.prefill_s[0], 2e-3 * 100 + 5e-6 * 100 * 100, "nothing measured, nothing done");
    unvisited_times(&t, &other);
    cr_assert_float_eq(t.prefill_s[4], 2e-3 * 800 + 5e-6 * 800 * 800, 1e-12);
    table_release(&t);
    table_release(&other);
}

/* timeless PROFILE.h5 OUT.h5 - a profile without what differs from run to run: times, how often they were measured, and
 * the command line. So cmp tells whether two runs wrote the same file.
 */
#include "profiler/table/table.h"

#include <stdio.h>
#include <stdlib.h>

/* The same values wherever there were any. Nothing is freed. */
static double *constant(const double *was, size_t n)
{
    double *x = calloc(n + 1, sizeof(*x));

    if (!x)
        abort();
    for (size_t i = 0; i < n; i++)
        x[i] = isnan(was[i]) ? was[i] : 1;
    return x;
}

int main(int argc, char **argv)
{
    struct table t;
    struct err err;

    if (argc != 3) {
        fprintf(stderr, "usage: timeless PROFILE.h5 OUT.h5\n");
        return 2;
    }
    if (table_read(&t, argv[1], TABLE_ALL, &err)) {
        fprintf(stderr, "timeless: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    size_t contexts = (size_t)t.n_contexts, cells = table_n_cells(&t);
    double **of_contexts[] = { &t.prefill_s, &t.question_s, &t.prefill_spread, &t.question_spread, &t.profiled_at };
    for (size_t i = 0; i < sizeof(of_contexts) / sizeof(*of_contexts); i++)
        *of_contexts[i] = constant(*of_contexts[i], contexts);
    t.compress_s = constant(t.compress_s, cells);
    t.decompress_s = constant(t.decompress_s, cells);
    for (int b = 0; b < TABLE_BATCHES; b++)
        t.decode_s[b] = constant(t.decode_s[b], cells);
    t.prefill_n = calloc(contexts + 1, sizeof(*t.prefill_n));
    for (size_t c = 0; t.prefill_n && c < contexts; c++) {
        t.prefill_n[c] = 1;
        t.prefill_spread[c] = NAN; // of one measurement
    }
    if (table_alloc_curve(&t, 0, &err) || table_set_text(&t.lineage, "{}", &err) || table_write(&t, argv[2], &err)) {
        fprintf(stderr, "timeless: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    return 0;
}

/* A method may keep more bytes than are read to answer: in a table's file, in united tables, in a plan's utilities. */
#include "profiler/table/table_column.h"
#include "tests/unit/placement_night.h"
#include "tests/unit/small_table.h"

#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

/* A table in which all bytes are read has no such dataset. */
Test(bytes_read, come_back_from_a_file)
{
    struct table t, back;
    struct err err;
    char path[] = "/tmp/evp-unit-XXXXXX";

    close(mkstemp(path));
    small_table(&t, 1, 2, 1, 3);
    cr_assert_eq(table_write(&t, path, &err), 0, "%s", err.msg);
    cr_assert_eq(table_read(&back, path, TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert(!back.cell_bytes_read && table_bytes_read(&back, 4) == back.cell_bytes[4]);
    cr_assert(isnan(table_read_frac(&back, 1)));
    table_release(&back);
    cr_assert_eq(table_alloc_read(&t, &err), 0);
    t.cell_bytes_read[4] = 500;
    cr_assert(!table_alloc_read(&t, &err) && t.cell_bytes_read[4] == 500, "what is there stays");
    t.cell_bytes[5] = -1;
    t.size_frac[5] = t.keep_frac[5] = t.compress_s[5] = t.decompress_s[5] = (double)NAN;
    cr_assert_eq(table_write(&t, path, &err), 0, "%s", err.msg);
    for (enum table_want want = TABLE_ALL; want <= TABLE_PLAN; want++) {
        cr_assert_eq(table_read(&back, path, want, &err), 0, "%s", err.msg);
        cr_assert(back.cell_bytes_read && table_bytes_read(&back, 4) == 500 && back.cell_bytes[4] == 2001);
        cr_assert(table_bytes_read(&back, 3) == 2000 && table_bytes_read(&back, 5) == -1);
        cr_assert_float_eq(table_read_frac(&back, 1), (0.5 + 0.5 * 500 / 2001) / 2, 1e-12);
        cr_assert(isnan(table_read_frac(&back, 0)) && isnan(table_read_frac(&back, 2)));
        table_all_read(&back);
        cr_assert_eq(table_bytes_read(&back, 4), 2001);
        table_release(&back);
    }
    table_release(&t);
    unlink(path);
}

/* Each line breaks one rule in one cell of 1,001 bytes. */
Test(bytes_read, bad_ones_are_refused)
{
    static const struct {
        int64_t bytes, read;
        const char *says;
    } bad[] = { { 1001, 1002, "bytes_read is more than bytes" },
                { 1001, INT64_MAX, "bytes_read is more than bytes" },
                { 1001, -2, "bytes_read is not a size" },
                { 1001, INT64_MIN, "bytes_read is not a size" },
                { -1, 0, "bytes_read without bytes" } };
    static const int64_t good[] = { 1001, 1000, 0, -1 };
    struct table t;
    struct err err;

    small_table(&t, 0, 2, 1, 2);
    cr_assert_eq(table_alloc_read(&t, &err), 0);
    for (int i = 0; i < 4; i++) {
        t.cell_bytes_read[3] = good[i];
        cr_assert_eq(table_check(&t, &err), 0, "%s", err.msg);
    }
    for (int i = 0; i < 5; i++) {
        char want[96];
        t.cell_bytes[3] = bad[i].bytes;
        t.cell_bytes_read[3] = bad[i].read;
        snprintf(want, sizeof(want), "context 'b/2' with 'knorm:drop=0.5': %s", bad[i].says);
        cr_assert_eq(table_check(&t, &err), ERR_FORMAT, "%d", i);
        cr_assert_str_eq(err.msg, want);
    }
    table_release(&t);
}

/* Of several tables, also when one has no such dataset; where all bytes are read again, they are. */
Test(bytes_read, come_with_their_cell)
{
    struct table a, b, both;
    struct err err;

    small_table(&a, 1, 2, 1, 3); // b/2 c/3
    small_table(&b, 0, 2, 1, 3); // a/1 b/2
    cr_assert(!table_alloc_read(&a, &err) && a.cell_bytes_read);
    a.cell_bytes_read[1] = 7; // b/2 knorm
    a.cell_bytes_read[2] = 8; // b/2 kivi
    a.cell_bytes_read[5] = 9; // c/3 kivi
    b.decode_s[0][4] = 0.1;   // b/2 knorm: better
    for (int turn = 0; turn < 2; turn++) {
        cr_assert_eq(table_unite(&both, (const struct table *const[]){ turn ? &b : &a, turn ? &a : &b }, 2, &err), 0,
                     "%s", err.msg);
        int first = turn ? 1 : 0, last = turn ? 2 : 1;
        cr_assert_eq(table_bytes_read(&both, table_cell(&both, first, 1)), 1001);
        cr_assert_eq(table_bytes_read(&both, table_cell(&both, first, 2)), turn ? 1002 : 8, "the first counts");
        cr_assert_eq(table_bytes_read(&both, table_cell(&both, last, 2)), 9);
        cr_assert_eq(table_bytes_read(&both, table_cell(&both, last, 0)), 2000);
        cr_assert_eq(table_check(&both, &err), 0, "%s", err.msg);
        table_release(&both);
    }
    table_release(&a);
    table_release(&b);
}

/* What is read takes the time and the bandwidth, what is kept takes the space and the writing. */
Test(bytes_read, what_is_not_read_takes_no_time, .init = night_open, .fini = night_close)
{
    struct placement_input in;
    struct placement_files f = night_files();
    int64_t bytes[CONFIGS];
    const int64_t size[CONFIGS] = { 400000, 200000, 80000 };
    double all[CONFIGS * TIERS], out[CONFIGS * TIERS];
    struct err err;

    night_read(&in, &f);
    in.frequency[2] = 3;
    in.move_cost = 1e-6;
    in.load = (struct manifest_load){ .rate = 1, .byte = { 1e-6, 2e-6 } }; /* what a byte adds to others' waits */
    const struct plan_problem p = placement_problem(&in);
    p.candidates(p.arg, 2, bytes, all);
    cr_assert_eq(table_alloc_read(&in.table, &err), 0);
    in.table.cell_bytes_read[table_cell(&in.table, 2, KEYDIFF)] = 50000; /* of 200,000 */
    p.candidates(p.arg, 2, bytes, out);
    for (int v = 0; v < CONFIGS; v++)
        for (int t = 0; t < TIERS; t++) {
            double less_s = v == KEYDIFF ? 150000 / (t == DRAM ? 1e9 : 1e8) + 150000 * in.load.byte[t] : 0;
            struct plan_placement c = { v, t };
            cr_assert_eq(bytes[v], size[v]);
            cr_assert_float_eq(out[v * TIERS + t], all[v * TIERS + t] + 3 * less_s, 1e-12);
            cr_assert_float_eq(placement_utility(&in, 2, c) - placement_write_cost(&in, 2, c), out[v * TIERS + t],
                               1e-12);
            cr_assert_eq(placement_written(&in, 2, c), bytes[v]);
            in.tiers.at[t].read_spread = 0.5; /* of 1 ms or 10 ms and the bytes */
            double read = v == KEYDIFF ? 50000 : (double)size[v];
            double read_s = t == DRAM ? 0.001 + read / 1e9 : 0.01 + read / 1e8;
            cr_assert_float_eq(placement_ttft_sd(&in, 2, c), 0.5 * read_s, 1e-12);
            in.tiers.at[t].read_spread = 0;
        }
    placement_input_release(&in);
}

/* Which points of a prefill are kept, and how their times are scaled. */
#include "profiler/run/prefill_curve.h"

#include <criterion/criterion.h>

/* Notes chunks of `step` tokens, a second each; keeps them in a table of a context whose prefill took half of that. */
static int note(struct table *t, int n_tokens, int step)
{
    struct prefill_curve c = { .n_tokens = n_tokens };
    struct err err;
    int n = 0;

    for (int done = 0; done < n_tokens; n++) {
        done = done + step < n_tokens ? done + step : n_tokens;
        prefill_curve_note(&c, done, n + 1);
    }
    cr_assert_eq(table_alloc(t, 1, 1, 0, &err), 0);
    t->context_id[0] = "a";
    t->config_name[0] = "none";
    t->n_tokens[0] = n_tokens;
    cr_assert_eq(prefill_curve_keep(&c, n / 2.0, t, &err), 0, "%s", err.msg);
    cr_assert_eq(table_check(t, &err), 0, "%s", err.msg);
    return n;
}

Test(prefill_curve, every_chunk_of_a_short_context)
{
    struct table t;

    for (int chunks = 1; chunks <= 64; chunks++) {
        cr_assert_eq(note(&t, 512 * chunks - 7, 512), chunks);
        cr_assert_eq(t.n_points, chunks);
        for (int i = 0; i < chunks; i++)
            cr_assert(t.curve_s[i] == (i + 1) / 2.0 &&
                      t.curve_n_tokens[i] == (i < chunks - 1 ? 512 * (i + 1) : 512 * chunks - 7));
        table_release(&t);
    }
}

Test(prefill_curve, at_most_64_points_of_a_long_one)
{
    struct table t;

    for (int chunks = 65; chunks < 1000; chunks += 17) {
        note(&t, 512 * chunks, 512);
        cr_assert(t.n_points <= 64 && t.n_points >= 32, "%d points of %d chunks", t.n_points, chunks);
        cr_assert(t.curve_n_tokens[t.n_points - 1] == 512 * chunks && t.curve_s[t.n_points - 1] == chunks / 2.0);
        table_release(&t);
    }
}

Test(prefill_curve, a_prefill_that_does_not_say_its_end_has_none)
{
    struct prefill_curve c = { .n_tokens = 1000 };
    struct table t;
    struct err err;

    cr_assert_eq(table_alloc(&t, 1, 1, 0, &err), 0);
    cr_assert_eq(prefill_curve_keep(&c, 1, &t, &err), 0);
    cr_assert_eq(t.n_points, 0);
    prefill_curve_note(&c, 512, 0); // a clock that does not move
    cr_assert_eq(prefill_curve_keep(&c, 1, &t, &err), 0);
    cr_assert_eq(t.n_points, 0);
    prefill_curve_note(&c, 512, 0);
    prefill_curve_note(&c, 1000, 0);
    cr_assert_eq(prefill_curve_keep(&c, 1, &t, &err), 0);
    cr_assert(t.n_points == 2 && t.curve_s[0] == 0 && t.curve_s[1] == 1);
    table_release(&t);
}

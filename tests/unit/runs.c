/* Runs of blocks: chains that prompts have together or not at all. */
#include "replay/runs.h"

#include <criterion/criterion.h>

Test(runs, are_the_longest_chains_without_an_end_or_a_branch)
{
    //  0-1-2 ends, -3-4 ends, -5-6 ends after 2 as well; 7 alone
    const int32_t parent[] = { -1, 0, 1, 2, 3, 2, 5, -1 };
    uint8_t ends[] = { 0, 0, 0, 0, 1, 0, 1, 1 };
    static const int32_t of[] = { 0, 0, 0, 1, 1, 2, 2, 3 };
    struct runs runs;
    struct err err;

    cr_assert_eq(runs_make(&runs, parent, ends, 8, &err), 0);
    cr_assert_eq(runs.n, 4);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(runs.of[i], of[i]);
    cr_assert(runs.at[0].n == 3 && runs.at[1].n == 2 && runs.at[1].parent == 0 && runs.at[3].parent == -1);
    runs_release(&runs);
    uint8_t within[] = { 0, 1, 0, 0, 1, 0, 1, 1 };
    cr_assert_eq(runs_make(&runs, parent, within, 8, &err), 0);
    cr_assert(runs.n == 5 && runs.of[1] == 0 && runs.of[2] == 1);
    runs_release(&runs);
    cr_assert_eq(runs_make(&runs, parent, within, 0, &err), 0);
    runs_release(&runs);
}

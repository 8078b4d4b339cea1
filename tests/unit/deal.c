/* Contexts dealt to devices of which some fail, and of which some are too small. */
#include "profiler/run/deal.h"

#include <criterion/criterion.h>

static struct work work[4] = { { .n_open = 1 }, { .n_open = 0 }, { .n_open = 3 }, { .n_open = 1 } };

static struct deal *deal(int n_devices)
{
    const struct grid g = { .work = work, .n_work = 4 };
    struct err err;
    struct deal *d = deal_new(&g, n_devices, &err);

    cr_assert(d);
    return d;
}

Test(deal, each_open_context_once_in_order_to_who_asks)
{
    struct deal *d = deal(2);

    cr_assert(!deal_is_over(d));
    cr_assert_eq(deal_next(d, 1), 0);
    cr_assert_eq(deal_next(d, 0), 2, "context 1 has nothing open");
    deal_done(d, 0);
    cr_assert_eq(deal_next(d, 0), 3);
    deal_done(d, 0);
    cr_assert_eq(deal_next(d, 0), -1);
    cr_assert(!deal_is_over(d), "device 1 has a context");
    deal_done(d, 1);
    cr_assert(deal_is_over(d));
    cr_assert_eq(deal_stranded(d), -1);
    deal_free(d);
}

Test(deal, the_context_of_a_device_that_fails_is_dealt_once_more)
{
    struct deal *d = deal(3);

    cr_assert_eq(deal_next(d, 0), 0);
    cr_assert_eq(deal_next(d, 1), 2);
    cr_assert_eq(deal_lost(d, 0), -1);
    cr_assert_eq(deal_next(d, 2), 0);
    cr_assert_eq(deal_lost(d, 2), 0, "it is given up");
    deal_done(d, 1);
    cr_assert_eq(deal_next(d, 1), 3);
    deal_done(d, 1);
    cr_assert(deal_next(d, 1) == -1 && deal_is_over(d));
    cr_assert_eq(deal_lost(d, 1), -1, "it had none");
    deal_free(d);
}

Test(deal, a_context_goes_to_devices_that_it_fits)
{
    struct deal *d = deal(2);

    deal_unfit(d, 0, 0);
    deal_unfit(d, 0, 3);
    deal_unfit(d, 1, 3);
    cr_assert_eq(deal_next(d, 0), 2);
    cr_assert_eq(deal_stranded(d), 3, "it fits none");
    cr_assert_eq(deal_stranded(d), -1);
    deal_done(d, 0);
    cr_assert(deal_next(d, 0) == -1 && !deal_is_over(d));
    cr_assert_eq(deal_lost(d, 1), -1);
    cr_assert_eq(deal_stranded(d), 0, "the device that it fits has failed");
    cr_assert(deal_is_over(d));
    deal_free(d);
}

Test(deal, what_waits_can_be_dropped)
{
    struct deal *d = deal(2);

    cr_assert_eq(deal_next(d, 1), 0);
    cr_assert(deal_drop(d) == 2 && deal_drop(d) == 3 && deal_drop(d) == -1);
    cr_assert(deal_next(d, 0) == -1 && !deal_is_over(d), "device 1 has a context");
    deal_done(d, 1);
    cr_assert(deal_is_over(d));
    deal_free(d);
}

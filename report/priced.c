/* priced.c - what caches of many sizes bring for their price: the best of them as a line, mean TTFT and 95th
 * percentile. Sizes come in the order of their prices. */
#include "report/report_internal.h"

#include <stdio.h>

enum { MEAN, SLOWEST, WORSE }; // series

static void draw_best(struct chart *c, const struct report_size *at, int n, int series)
{
    char title[160];
    struct chart_point last = { 0 };
    bool begun = false;

    for (int i = 0; i < n; i++) {
        if (!at[i].best)
            continue;
        struct chart_point line[] = { last, { at[i].usd, series == MEAN ? at[i].ttft_s : at[i].p95_s } };
        if (begun)
            chart_line(c, series, line, 2);
        snprintf(title, sizeof(title), "%s: %.0f USD, TTFT %.3g s, 95 %% below %.3g s", at[i].name, at[i].usd,
                 at[i].ttft_s, at[i].p95_s);
        chart_mark(c, series, line[1], title);
        last = line[1];
        begun = true;
    }
    if (begun)
        chart_label(c, last, series == MEAN ? "mean" : "95 % below");
}

void priced_svg(struct buf *out, const struct report_size *at, int n)
{
    struct chart c = { .out = out, .x = axis_of(AXIS_NUMBER, "price, USD"), .y = axis_of(AXIS_SECONDS, "TTFT") };

    for (int i = 0; i < n; i++) {
        axis_see(&c.x, at[i].usd);
        axis_see(&c.y, at[i].ttft_s);
        if (at[i].best)
            axis_see(&c.y, at[i].p95_s);
    }
    chart_begin(&c, "Time to first token against the price of DRAM and SSD");
    for (int i = 0; i < n; i++)
        if (!at[i].best)
            chart_mark(&c, WORSE, (struct chart_point){ at[i].usd, at[i].ttft_s }, at[i].name);
    draw_best(&c, at, n, SLOWEST);
    draw_best(&c, at, n, MEAN);
    chart_end(&c);
}

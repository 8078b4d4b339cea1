/* report.h - a profile or table, a manifest, a frontier, a receipt and a replay as one page of HTML for people.
 *
 * The page is self-contained: no script, no external style sheet or picture; plots are inline SVG, with colours for a
 * light and a dark screen. It is readable without colour: series differ in marks. It stays below REPORT_MAX_BYTES:
 * contexts are sorted by use, in full detail as long as there is space, then one line each, then omitted; the page says
 * how many are missing.
 *
 *     struct report r = { .table = &t, .manifest = &m };
 *     report_write(&r, &html, &err);
 *
 * Text from files stays text: it never becomes markup. The same files give the same bytes.
 */
#ifndef EVP_REPORT_H
#define EVP_REPORT_H

#include "base/buf.h"
#include "base/err.h"
#include "formats/frontier.h"
#include "formats/manifest.h"
#include "formats/receipt.h"
#include "formats/replay_table.h"
#include "profiler/table/table.h"

enum { REPORT_MAX_BYTES = 1900000 };

struct report {
    /* each may be NULL, but not all; borrowed */
    const struct table *table; // read with TABLE_ALL
    const struct manifest *manifest;
    const struct manifest *before; // the plan before it, shown beside it; NULL unless there is a manifest
    const struct tsv *frontier;
    const struct receipt *receipt;
    const struct tsv *replay; // of evp-replay
};

/* Adds the page to *html. */
int report_write(const struct report *r, struct buf *html, struct err *err) MUST_CHECK;

/* Adds the page's first figure, TTFT against quality, as an SVG file. ERR_FORMAT: neither a frontier nor a manifest
 * that compares its plan with others. */
int report_write_svg(const struct report *r, struct buf *svg, struct err *err) MUST_CHECK;

enum { REPORT_QUALITIES = 64 };

/* Where a replay is read. */
struct report_at {
    double quality[REPORT_QUALITIES];
    int n;
    double max_s; // negative: none
};

/* Adds what each kind of policy of a replay brings at some qualities: a table, tab-separated, a line for each quality,
 * rate and kind, in this order. Policies are of one kind that differ in the parameters of their config or the name of
 * their manifest. TTFT lies on the lower convex hull of the kind's points, as a mix of two policies' does; "-": none is
 * so good. docs/formats/replay.md has the columns. ERR_FORMAT: more than 4,096 lines. */
int report_at_quality(const struct tsv *replay, const struct report_at *at, struct buf *out,
                      struct err *err) MUST_CHECK;

/* What caches of some size cost, and bring (evp-gain --sweep). */
struct report_size {
    char name[96];
    double usd, ttft_s, p95_s;
    bool best; // no other one is as good in all three
};

/* Adds TTFT against the price as an SVG file. */
int report_sizes_svg(const struct report_size *at, int n, struct buf *svg, struct err *err) MUST_CHECK;

#endif

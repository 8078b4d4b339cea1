/* report.h - a profile or table, a manifest and a receipt as one page of HTML for people.
 *
 * The page is self-contained: no script, no external style sheet or picture; plots are inline SVG. It is readable
 * without colour: series differ in marks and dashes. It stays below REPORT_MAX_BYTES: contexts are sorted by use, in
 * full detail as long as there is space, then one line each, then omitted; the page says how many are missing.
 *
 *     struct report r = { .table = &t, .manifest = &m, .plots = PLOTS_DRAWN };
 *     report_write(&r, &html, &err);
 *
 * Text from files stays text: it never becomes markup or a gnuplot command.
 */
#ifndef EVP_REPORT_H
#define EVP_REPORT_H

#include "base/buf.h"
#include "base/err.h"
#include "formats/manifest.h"
#include "formats/receipt.h"
#include "profiler/table/table.h"

enum { REPORT_MAX_BYTES = 1900000 };

struct report {
    /* each may be NULL, but not all; borrowed */
    const struct table *table; // read with TABLE_ALL
    const struct manifest *manifest;
    const struct receipt *receipt;

    /* result: gnuplot is not installed, so the page has only tables */
    bool no_plots;
};

/* Adds the page to *html. ERR_IO: gnuplot failed. */
int report_write(struct report *r, struct buf *html, struct err *err) MUST_CHECK;

#endif

/* report.h - a profile or table, a manifest and a receipt as one page of HTML for people.
 *
 * The page needs nothing else: no script, no style sheet, no picture beside it; plots are SVG inside it. It is readable
 * without colour: series differ in marks and dashes. It stays below REPORT_MAX_BYTES: contexts come in the order of
 * their uses, with details as long as there is space, then a line each, then none, and the page says how many are
 * missing.
 *
 *     struct report r = { .table = &t, .manifest = &m, .plots = PLOTS_DRAWN };
 *     report_write(&r, &html, &err);
 *
 * Whatever a file says is text here: nothing of it becomes markup, or a command of gnuplot's.
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
    /* each may be NULL, not all of them; borrowed */
    const struct table *table; // read with TABLE_ALL
    const struct manifest *manifest;
    const struct receipt *receipt;

    /* result: gnuplot is not installed, so the page has tables alone */
    bool no_plots;
};

/* Adds the page to *html. ERR_IO: gnuplot is there and failed. */
int report_write(struct report *r, struct buf *html, struct err *err) MUST_CHECK;

#endif

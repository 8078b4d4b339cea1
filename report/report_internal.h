/* report_internal.h - shared by the files of report/: html.c writes text, plot.c runs gnuplot, figures.c draws,
 * contexts.c lists the contexts.
 */
#ifndef EVP_REPORT_INTERNAL_H
#define EVP_REPORT_INTERNAL_H

#include "report/report.h"

/* ---- html.c: replaces malformed text, escapes markup ---- */

void html_text(struct buf *out, const char *text);
void html_short(struct buf *out, const char *text, size_t max); // at most max bytes, then "..."
void html_real(struct buf *out, double v, int digits);          // "-" for NaN
void html_seconds(struct buf *out, double s);
void html_bytes(struct buf *out, double bytes);

/* ---- plot.c ---- */

enum { PLOT_ABSENT = 1 }; // gnuplot is not installed

/* Runs a gnuplot script that draws one plot, and adds its SVG. Text from files must go through plot_label(). */
int plot_svg(struct buf *out, const struct buf *script, struct err *err) MUST_CHECK;

/* Adds a text in single quotes, without any character that gnuplot could interpret. */
void plot_label(struct buf *script, const char *text);

/* ---- figures.c ---- */

/* Each adds a figure, or nothing when its file lacks the data. PLOT_ABSENT: nothing was drawn. */
int figure_quality(struct buf *out, const struct table *t, struct err *err) MUST_CHECK;
int figure_held_out(struct buf *out, const struct table *t, struct err *err) MUST_CHECK;
int figure_fills(struct buf *out, const struct manifest *m, struct err *err) MUST_CHECK;
int figure_ttft(struct buf *out, const struct report *r, struct err *err) MUST_CHECK;

/* ---- contexts.c ---- */

void report_contexts(struct buf *out, const struct report *r, struct err *err);
void report_scale(struct buf *out, const struct table *t);    // the meaning of the numbers
void report_examples(struct buf *out, const struct table *t); // answers of high, middle and low similarity

#endif

/* report_internal.h - between the parts of a report: html.c writes text, plot.c runs gnuplot, figures.c draws,
 * contexts.c says where each context went.
 */
#ifndef EVP_REPORT_INTERNAL_H
#define EVP_REPORT_INTERNAL_H

#include "report/report.h"

/* ---- html.c: malformed text is replaced, markup in it is escaped ---- */

void html_text(struct buf *out, const char *text);
void html_short(struct buf *out, const char *text, size_t max); // at most so many bytes, then "..."
void html_real(struct buf *out, double v, int digits);          // "-" for NaN
void html_seconds(struct buf *out, double s);
void html_bytes(struct buf *out, double bytes);

/* ---- plot.c ---- */

enum { PLOT_ABSENT = 1 }; // gnuplot is not installed

/* Runs a script of gnuplot's that draws one plot, and adds its SVG. What is not ours in a script has gone through
 * plot_label(). */
int plot_svg(struct buf *out, const struct buf *script, struct err *err) MUST_CHECK;

/* Adds a text in single quotes, without any character that gnuplot could take for more than text. */
void plot_label(struct buf *script, const char *text);

/* ---- figures.c ---- */

/* Each adds a figure, or nothing where its file lacks what it draws. PLOT_ABSENT: nothing was drawn. */
int figure_quality(struct buf *out, const struct table *t, struct err *err) MUST_CHECK;
int figure_held_out(struct buf *out, const struct table *t, struct err *err) MUST_CHECK;
int figure_fills(struct buf *out, const struct manifest *m, struct err *err) MUST_CHECK;
int figure_ttft(struct buf *out, const struct report *r, struct err *err) MUST_CHECK;

/* ---- contexts.c ---- */

void report_contexts(struct buf *out, const struct report *r, struct err *err);
void report_scale(struct buf *out, const struct table *t);    // what the numbers mean
void report_examples(struct buf *out, const struct table *t); // answers of high, middle and low similarity

#endif

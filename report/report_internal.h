/* report_internal.h - shared by the files of report/; report/README.md says what each is for. */
#ifndef EVP_REPORT_INTERNAL_H
#define EVP_REPORT_INTERNAL_H

#include "report/report.h"

/* ---- html.c: replaces malformed text, escapes markup ---- */

void html_text(struct buf *out, const char *text);
void html_short(struct buf *out, const char *text, size_t max); // at most max bytes, then "..."
void html_part(struct buf *out, const char *text, size_t n);    // n bytes
size_t html_cut(const char *text, size_t max);                  // the most whole characters in max bytes
void html_seconds(struct buf *out, double s);                   // with a unit that fits
void html_day(struct buf *out, double seconds);                 // since 1970, UTC: "23 November 2026"

/* A table, in a frame that scrolls sideways on a narrow screen: its columns, then its rows. The first cell of a row is
 * its name. The unit of a column stands in its head; NULL: none. */
void html_table(struct buf *out, const char *name);
void html_column(struct buf *out, const char *head);
void html_column_n(struct buf *out, const char *head, const char *unit); // of numbers, aligned to the right
void html_rows(struct buf *out);                                         // the columns are complete
enum html_row { ROW_PLAIN, ROW_CHOSEN };
void html_row(struct buf *out, enum html_row row, const char *name, size_t max); // at most max bytes of the name
void html_row_end(struct buf *out);
void html_table_end(struct buf *out);

/* Cells: a number, "-" for NaN; a whole number; a text. */
void html_cell(struct buf *out, double v, int digits);
void html_cell_int(struct buf *out, int64_t v);
void html_cell_text(struct buf *out, const char *text);
void html_cell_error(struct buf *out, double v,
                     double error); // v ± error, three digits; error NAN: not known, 0: exact

/* The unit of a column: all its cells have the same. */
struct html_unit {
    const char *name;
    double size; // of the unit, in seconds or bytes
    int digits;
};
struct html_unit html_seconds_unit(double largest);
struct html_unit html_bytes_unit(double largest);
void html_cell_unit(struct buf *out, double v, const struct html_unit *unit);
int html_digits(double largest); // decimals of a column without a unit, for about four significant figures

extern const char *const report_style[]; // of the page, in parts; NULL after the last

/* ---- chart.c: one plot as SVG; colours are classes of chart_style, for light and dark ---- */

extern const char chart_style[];

enum { CHART_SERIES = 7, CHART_BOXES = 400 };
enum axis_kind { AXIS_QUALITY, AXIS_SHARE, AXIS_NUMBER, AXIS_PERCENT, AXIS_SECONDS }; // seconds are logarithmic

struct axis {
    enum axis_kind kind;
    const char *label;
    double min, max; // min > max: no value yet
};

struct chart_point {
    double x, y;
};

struct chart {
    struct buf *out;
    struct axis x, y;
    struct chart_box {
        double x0, y0, x1, y1;
    } taken[CHART_BOXES]; // of marks and labels, which do not cover each other
    int n_taken;
};

/* An axis that shows nothing yet; axis_see() widens it to a value. */
struct axis axis_of(enum axis_kind kind, const char *label);
void axis_see(struct axis *axis, double v);

/* begin draws the axes: all values have been seen. Marks come before labels, which take a place that is free near
 * their point, or are left out. `title` is shown when a pointer is over the mark; series: 0 to CHART_SERIES - 1. */
void chart_begin(struct chart *c, const char *name);
void chart_line(struct chart *c, int series, const struct chart_point *at, int n);
void chart_diagonal(struct chart *c); // from x = y to x = y
void chart_error(struct chart *c, struct chart_point from, struct chart_point to);
void chart_mark(struct chart *c, int series, struct chart_point at, const char *title);
void chart_ring(struct chart *c, struct chart_point at); // around a mark: the plan's choice
void chart_label(struct chart *c, struct chart_point at, const char *text);
void chart_level(struct chart *c, double y, const char *label); // a horizontal line
void chart_end(struct chart *c);

/* A series in a legend: its mark on its line, or the line alone. */
void chart_key(struct buf *out, int series);
void chart_key_line(struct buf *out, int series);

/* ---- figures.c ---- */

void figure_begin(struct buf *out, const char *caption, const char *dataset); // NULL: of all

/* Each adds a figure, or nothing when its file lacks the data. The first three are of a table with qualities. */
int figure_quality(struct buf *out, const struct report *r, struct err *err) MUST_CHECK;
int figure_datasets(struct buf *out, const struct report *r, struct err *err) MUST_CHECK; // a figure for each
int figure_held_out(struct buf *out, const struct report *r, struct err *err) MUST_CHECK;
int figure_ttft(struct buf *out, const struct report *r, struct err *err) MUST_CHECK;

/* ---- gain.c: TTFT against quality of this plan, of other alphas and of plans that need no planner ---- */

bool gain_known(const struct report *r); // is there anything to draw?
void gain_svg(struct buf *out, const struct report *r);
void gain_table(struct buf *out, const struct report *r); // the alphas, one line each

/* ---- priced.c: TTFT of caches against their price ---- */

void priced_svg(struct buf *out, const struct report_size *at, int n);

/* ---- replayed.c: policies beside each other ---- */

void report_replayed(struct buf *out, const struct tsv *table);

/* ---- headline.c: the answer in words, before everything else ---- */

void report_headline(struct buf *out, const struct report *r);
void report_made(struct buf *out, const struct report *r); // the commands that made the files

/* ---- totals.c: the plan and its baselines, tiers, the load ---- */

void report_totals(struct buf *out, const struct report *r);
void report_tiers(struct buf *out, const struct report *r);

/* ---- configs.c ---- */

int report_configs(struct buf *out, const struct report *r, struct err *err) MUST_CHECK;

/* (V): the number of contexts that the plan stores under each config, 0 without a plan. The caller frees it. NULL:
 * ERR_NOMEM. */
int *report_uses(const struct report *r, struct err *err) MUST_CHECK;

/* ---- answers.c: answers side by side, with what changed marked ---- */

void answers_examples(struct buf *out, const struct report *r);
void answers_of(struct buf *out, const struct table *t, int context, int config); // best, middle and worst

/* ---- contexts.c ---- */

void report_contexts(struct buf *out, const struct report *r, struct err *err);

#endif

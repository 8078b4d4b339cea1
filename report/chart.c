/* chart.c - one plot as an SVG element: axes with round ticks, lines, marks that differ in shape and colour, and labels
 * that take a free place beside their point. Colours are classes, so one style sheet serves light, dark and print.
 */
#include "base/parse.h"
#include "report/report_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The picture in its own units; it is shown at any width. */
enum { WIDTH = 480, HEIGHT = 332, LEFT = 58, RIGHT = 14, TOP = 44, BOTTOM = 46, LINE = 13, TICKS = 5 };
static const double LETTER = 6.7; // the mean width of a letter

const char chart_style[] =
    ".chart{--ink:#1c2127;--dim:#5d6772;--grid:#e3e7eb;--paper:#fff;display:block;width:100%;height:auto;overflow:"
    "visible}\n"
    ".s0{--c:#1c2127}.s1{--c:#0b62c4}.s2{--c:#c2410c}.s3{--c:#15803d}.s4{--c:#8b3fc7}.s5{--c:#a16207}.s6{--c:#0e7490}\n"
    "@media(prefers-color-scheme:dark){.chart{--ink:#e6e9ed;--dim:#9aa5b1;--grid:#2b323a;--paper:#14181d}\n"
    ".s0{--c:#e6e9ed}.s1{--c:#6cb0ff}.s2{--c:#ff9466}.s3{--c:#5dd08a}.s4{--c:#cc9bff}.s5{--c:#e2b84d}.s6{--c:#5ccbe0}}"
    "\n"
    ".chart text{font:12px system-ui,sans-serif;fill:var(--dim);stroke:none}\n"
    ".chart .name{fill:var(--ink);paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}\n"
    ".chart .grid{stroke:var(--grid);stroke-width:1}.chart .axis{stroke:var(--dim);stroke-width:1}\n"
    ".chart .line{stroke:var(--c);stroke-width:1.8;fill:none;stroke-linejoin:round}\n"
    ".chart .level{stroke:var(--dim);stroke-width:1;stroke-dasharray:4 4}.chart .error{stroke:var(--dim);stroke-width:"
    "1}\n"
    ".chart .mark{fill:var(--c);stroke:var(--paper);stroke-width:1}\n"
    ".chart .ring{fill:none;stroke:var(--ink);stroke-width:1.6}\n"
    "@media(max-width:30em){.chart text{font-size:14px}}\n";

static const char *const shapes[CHART_SERIES] = {
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",        // circle
    "M-4 -4h8v8h-8z",                                       // square
    "M0 -5.5l5 9h-10z",                                     // triangle
    "M0 -6l5.5 6l-5.5 6l-5.5 -6z",                          // diamond
    "M0 5.5l5 -9h-10z",                                     // triangle, point down
    "M-5.5 -2h3.5v-3.5h4v3.5h3.5v4h-3.5v3.5h-4v-3.5h-3.5z", // plus
    "M-5 -2.5l5 -3.5l5 3.5l-2 6.5h-6z",                     // pentagon
};

/* ---- axes ------------------------------------------------------------------ */

struct axis axis_of(enum axis_kind kind, const char *label)
{
    return (struct axis){ kind, label, (double)INFINITY, -(double)INFINITY };
}

/* What an axis can show: a time of 0 has no logarithm. */
static double shown(const struct axis *a, double v)
{
    return a->kind == AXIS_SECONDS ? log10(v > 1e-6 ? v : 1e-6) : v;
}

void axis_see(struct axis *a, double v)
{
    if (!isfinite(v))
        return;
    a->min = fmin(a->min, shown(a, v));
    a->max = fmax(a->max, shown(a, v));
}

/* The distance of ticks: 1, 2 or 5 times a power of ten. */
static double tick_step(const struct axis *a)
{
    double raw = (a->max - a->min) / TICKS, power = pow(10, floor(log10(raw))), f = raw / power;

    return power * (f < 1.5 ? 1 : f < 3.5 ? 2 : f < 7.5 ? 5 : 10);
}

/* Rounds the ends outwards. A quality ends at 1, shares and numbers begin at 0. */
static void axis_round(struct axis *a)
{
    if (a->min > a->max)
        a->min = a->max = 0;
    if (a->kind == AXIS_SHARE || a->kind == AXIS_PERCENT || a->kind == AXIS_NUMBER) {
        const double room = 1.05;
        a->min = 0;
        a->max = a->kind == AXIS_SHARE ? fmax(1, a->max) : a->kind == AXIS_PERCENT ? 100 : fmax(a->max, 1e-9) * room;
        return;
    }
    if (a->kind == AXIS_QUALITY) {
        a->min = fmax(0, floor(fmin(a->min, 0.9) * 10 - 0.2) / 10);
        a->max = 1;
        return;
    }
    double room = fmax(0.15, 0.06 * (a->max - a->min));
    a->min -= room;
    a->max += room;
}

static double place_x(const struct chart *c, double v)
{
    return LEFT + (shown(&c->x, v) - c->x.min) / (c->x.max - c->x.min) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const struct chart *c, double v)
{
    return HEIGHT - BOTTOM - (shown(&c->y, v) - c->y.min) / (c->y.max - c->y.min) * (HEIGHT - TOP - BOTTOM);
}

static void put_tick(const struct chart *c, bool across, double v)
{
    const struct axis *a = across ? &c->x : &c->y;
    char text[TEXT_SHORT];

    if (a->kind == AXIS_SECONDS && v < 1e9)
        snprintf(text, sizeof(text),
                 v < 0.9995e-3 ? "%g us"
                 : v < 0.9995  ? "%g ms"
                               : "%g s",
                 v < 0.9995e-3 ? v * 1e6
                 : v < 0.9995  ? v * 1e3
                               : v);
    else
        snprintf(text, sizeof(text), "%g", v);
    if (across)
        buf_printf(c->out,
                   "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>",
                   place_x(c, v), HEIGHT - BOTTOM, TOP, place_x(c, v), HEIGHT - BOTTOM + 16, text);
    else
        buf_printf(c->out,
                   "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
                   LEFT, place_y(c, v), WIDTH - RIGHT, LEFT - 7, place_y(c, v) + 4, text);
}

/* Ticks at 1, 2 and 5 times powers of ten; over many powers at some of these alone. */
static void put_log_ticks(const struct chart *c, bool across)
{
    const struct axis *a = across ? &c->x : &c->y;
    static const double steps[] = { 1, 2, 5 };
    double decades = a->max - a->min;
    int every = (int)(decades / 8) + 1;

    for (int k = (int)floor(a->min); k <= a->max; k++)
        for (int i = 0; i < (decades > 2.2 ? 1 : 3); i++) {
            double v = log10(steps[i]) + k;
            if (v >= a->min && v <= a->max && (k % every == 0))
                put_tick(c, across, steps[i] * pow(10, k));
        }
}

static void put_ticks(const struct chart *c, bool across)
{
    const struct axis *a = across ? &c->x : &c->y;

    if (a->kind == AXIS_SECONDS) {
        put_log_ticks(c, across);
        return;
    }
    double step = tick_step(a);
    for (int i = 0; i <= 4 * TICKS && a->min + i * step <= a->max + step * 1e-6; i++)
        put_tick(c, across, round((a->min + i * step) / step) * step);
}

void chart_begin(struct chart *c, const char *name)
{
    axis_round(&c->x);
    axis_round(&c->y);
    buf_printf(c->out,
               "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
               "aria-label=\"",
               WIDTH, HEIGHT);
    html_text(c->out, name);
    buf_adds(c->out, "\">\n");
    put_ticks(c, true);
    put_ticks(c, false);
    buf_printf(c->out, "\n<path class=\"axis\" d=\"M%d %dH%d\"/>", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT);
    buf_printf(c->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
    html_text(c->out, c->x.label);
    buf_printf(c->out, "</text><text transform=\"translate(13 %d) rotate(-90)\" text-anchor=\"middle\">",
               (TOP + HEIGHT - BOTTOM) / 2);
    html_text(c->out, c->y.label);
    if (c->y.kind == AXIS_QUALITY && c->y.min > 0)
        buf_printf(c->out, " (from %g)", c->y.min);
    buf_adds(c->out, "</text>\n");
}

/* ---- what is drawn --------------------------------------------------------- */

void chart_line(struct chart *c, int series, const struct chart_point *at, int n)
{
    buf_printf(c->out, "<path class=\"line s%d\" d=\"", series % CHART_SERIES);
    for (int i = 0; i < n; i++)
        buf_printf(c->out, "%c%.1f %.1f", i ? 'L' : 'M', place_x(c, at[i].x), place_y(c, at[i].y));
    buf_adds(c->out, "\"/>\n");
}

void chart_diagonal(struct chart *c)
{
    double from = fmax(c->x.min, c->y.min), to = fmin(c->x.max, c->y.max);

    if (from < to)
        buf_printf(c->out, "<path class=\"level\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", place_x(c, from), place_y(c, from),
                   place_x(c, to), place_y(c, to));
}

static double inside(const struct axis *a, double v)
{
    return a->kind == AXIS_SECONDS ? v : fmin(fmax(v, a->min), a->max);
}

void chart_error(struct chart *c, struct chart_point from, struct chart_point to)
{
    buf_printf(c->out, "<path class=\"error\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", place_x(c, inside(&c->x, from.x)),
               place_y(c, inside(&c->y, from.y)), place_x(c, inside(&c->x, to.x)), place_y(c, inside(&c->y, to.y)));
}

static void take(struct chart *c, struct chart_box box)
{
    if (c->n_taken < CHART_BOXES)
        c->taken[c->n_taken++] = box;
}

void chart_mark(struct chart *c, int series, struct chart_point at, const char *title)
{
    double x = place_x(c, at.x), y = place_y(c, at.y);

    buf_printf(c->out, "<path class=\"mark s%d\" transform=\"translate(%.1f %.1f)\" d=\"%s\"><title>",
               series % CHART_SERIES, x, y, shapes[series % CHART_SERIES]);
    html_text(c->out, title);
    buf_adds(c->out, "</title></path>\n");
    take(c, (struct chart_box){ x - 5, y - 5, x + 5, y + 5 });
}

void chart_ring(struct chart *c, struct chart_point at)
{
    double x = place_x(c, at.x), y = place_y(c, at.y);

    buf_printf(c->out, "<circle class=\"ring\" cx=\"%.1f\" cy=\"%.1f\" r=\"8.5\"/>\n", x, y);
    take(c, (struct chart_box){ x - 9, y - 9, x + 9, y + 9 });
}

/* ---- labels ---------------------------------------------------------------- */

static bool is_free(const struct chart *c, const struct chart_box *b)
{
    if (b->x0 < LEFT || b->x1 > WIDTH || b->y0 < 0 || b->y1 > HEIGHT - BOTTOM)
        return false;
    for (int i = 0; i < c->n_taken; i++) {
        const struct chart_box *t = &c->taken[i];
        if (b->x0 < t->x1 && t->x0 < b->x1 && b->y0 < t->y1 && t->y0 < b->y1)
            return false;
    }
    return true;
}

static double width_of(const char *text)
{
    double n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n * LETTER + 2;
}

/* Writes a text into a box. */
static void put_label(struct chart *c, struct chart_box box, const char *text)
{
    take(c, box);
    buf_printf(c->out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (box.x0 + box.x1) / 2,
               box.y1 - 2.5);
    html_text(c->out, text);
    buf_adds(c->out, "</text>\n");
}

void chart_label(struct chart *c, struct chart_point at, const char *text)
{
    /* Where the label's middle may be: right, left, above and below first, then aslant, then further away. */
    static const signed char way[][2] = { { 1, 0 }, { -1, 0 },  { 0, -1 }, { 0, 1 },  { 1, -1 },
                                          { 1, 1 }, { -1, -1 }, { -1, 1 }, { 0, -2 }, { 0, 2 } };
    double x = place_x(c, at.x), y = place_y(c, at.y), w = width_of(text);

    for (size_t i = 0; i < sizeof(way) / sizeof(*way); i++) {
        double mx = x + way[i][0] * (w / 2 + 11), my = y + way[i][1] * (LINE + 4);
        if (way[i][0] == 0)
            mx = fmin(mx, WIDTH - w / 2);
        struct chart_box box = { mx - w / 2, my - LINE / 2.0, mx + w / 2, my + LINE / 2.0 };
        if (is_free(c, &box)) {
            put_label(c, box, text);
            return;
        }
    }
}

void chart_level(struct chart *c, double v, const char *label)
{
    double y = place_y(c, v), w = width_of(label);

    if (!(shown(&c->y, v) >= c->y.min && shown(&c->y, v) <= c->y.max))
        return;
    buf_printf(c->out, "<path class=\"level\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, WIDTH - RIGHT);
    for (double x = WIDTH - RIGHT - w; x >= LEFT; x -= 20) {
        struct chart_box box = { x, y - LINE - 2, x + w, y - 2 };
        if (is_free(c, &box)) {
            put_label(c, box, label);
            return;
        }
    }
}

void chart_end(struct chart *c)
{
    buf_adds(c->out, "</svg>\n");
}

void chart_key_line(struct buf *out, int series)
{
    buf_printf(out,
               "<svg class=\"chart\" viewBox=\"-12 -7 24 14\" aria-hidden=\"true\"><path class=\"line s%d\" "
               "d=\"M-12 0H12\"/></svg>",
               series % CHART_SERIES);
}

void chart_key(struct buf *out, int series)
{
    buf_printf(out,
               "<svg class=\"chart\" viewBox=\"-12 -7 24 14\" aria-hidden=\"true\"><path class=\"line s%d\" "
               "d=\"M-12 0H12\"/><path class=\"mark s%d\" d=\"%s\"/></svg>",
               series % CHART_SERIES, series % CHART_SERIES, shapes[series % CHART_SERIES]);
}

/* html.c - text, numbers, sizes, times and tables as HTML. */
#include "base/parse.h"
#include "base/utf8.h"
#include "report/report_internal.h"

#include <math.h>
#include <string.h>
#include <time.h>

void html_short(struct buf *out, const char *text, size_t max)
{
    struct buf clean = { 0 };
    size_t n = strlen(text), end = n < max ? n : max;

    while (end > 0 && end < n && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    utf8_clean(&clean, text, end);
    for (const char *s = buf_str(&clean); *s; s++) {
        switch (*s) {
        case '<': buf_adds(out, "&lt;"); break;
        case '>': buf_adds(out, "&gt;"); break;
        case '&': buf_adds(out, "&amp;"); break;
        case '"': buf_adds(out, "&quot;"); break;
        default: buf_addc(out, ((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f ? '?' : *s);
        }
    }
    buf_adds(out, end < n ? "..." : "");
    out->failed |= buf_failed(&clean);
    buf_release(&clean);
}

void html_text(struct buf *out, const char *text)
{
    html_short(out, text, strlen(text));
}

void html_seconds(struct buf *out, double s)
{
    char text[TEXT_SHORT];

    buf_adds(out, isnan(s) ? "-" : text_seconds(text, s));
}

void html_bytes(struct buf *out, double bytes)
{
    char text[TEXT_SHORT];

    buf_adds(out, text_bytes(text, bytes));
}

void html_day(struct buf *out, double seconds)
{
    static const char *const month[] = { "January", "February", "March",     "April",   "May",      "June",
                                         "July",    "August",   "September", "October", "November", "December" };
    time_t at = (time_t)seconds;
    struct tm day;

    if (gmtime_r(&at, &day))
        buf_printf(out, "%d %s %d", day.tm_mday, month[day.tm_mon], day.tm_year + 1900);
}

/* ---- tables ---------------------------------------------------------------- */

void html_table(struct buf *out, const char *caption)
{
    buf_adds(out, "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"");
    html_text(out, caption);
    buf_adds(out, "\"><table>\n");
}

void html_table_end(struct buf *out)
{
    buf_adds(out, "</table></div>\n");
}

static void put_number(struct buf *out, double v, int digits)
{
    if (isnan(v))
        buf_adds(out, "-");
    else
        buf_printf(out, fabs(v) < 1e15 ? "%.*f" : "%.*e", digits, v);
}

void html_cell(struct buf *out, double v, int digits)
{
    buf_adds(out, "<td class=\"n\">");
    put_number(out, v, digits);
}

void html_cell_error(struct buf *out, double v, double error)
{
    html_cell(out, v, 3);
    if (!isnan(v))
        buf_printf(out, isnan(error) ? "<span class=\"pm\"></span>" : "<span class=\"pm\"> &plusmn; %.3f</span>",
                   error);
}

/* ---- units ----------------------------------------------------------------- */

struct html_unit html_seconds_unit(double largest)
{
    return largest < 1e-3 ? (struct html_unit){ "us", 1e-6, 0 }
           : largest < 1  ? (struct html_unit){ "ms", 1e-3, 1 }
                          : (struct html_unit){ "s", 1, 3 };
}

struct html_unit html_bytes_unit(double largest)
{
    static const struct html_unit units[] = {
        { "B", 1, 0 }, { "KiB", 1024, 1 }, { "MiB", 1048576, 1 }, { "GiB", 1073741824, 1 }, { "TiB", 1099511627776, 1 }
    };
    size_t i = 0;

    while (i + 1 < sizeof(units) / sizeof(*units) && largest >= units[i + 1].size)
        i++;
    return units[i];
}

void html_cell_unit(struct buf *out, double v, const struct html_unit *unit)
{
    html_cell(out, v / unit->size, unit->digits);
}

int html_digits(double largest)
{
    largest = fabs(largest);
    return largest >= 1000 ? 0 : largest >= 100 ? 1 : largest >= 10 ? 2 : 3;
}

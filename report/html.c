/* html.c - text, numbers, sizes, times and tables as HTML. */
#include "base/parse.h"
#include "base/utf8.h"
#include "report/report_internal.h"

#include <math.h>
#include <string.h>
#include <time.h>

void html_part(struct buf *out, const char *text, size_t n)
{
    struct buf clean = { 0 };

    utf8_clean(&clean, text, n);
    for (const char *s = buf_str(&clean); *s; s++) {
        switch (*s) {
        case '<': buf_adds(out, "&lt;"); break;
        case '>': buf_adds(out, "&gt;"); break;
        case '&': buf_adds(out, "&amp;"); break;
        case '"': buf_adds(out, "&quot;"); break;
        default: buf_addc(out, ((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f ? '?' : *s);
        }
    }
    out->failed |= buf_failed(&clean);
    buf_release(&clean);
}

size_t html_cut(const char *text, size_t max)
{
    size_t n = strlen(text), end = n < max ? n : max;

    while (end > 0 && end < n && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    return end;
}

void html_short(struct buf *out, const char *text, size_t max)
{
    size_t end = html_cut(text, max);

    html_part(out, text, end);
    buf_adds(out, text[end] ? "..." : "");
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

void html_table(struct buf *out, const char *name)
{
    buf_adds(out, "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"");
    html_text(out, name);
    buf_adds(out, "\"><table>\n<thead><tr>");
}

void html_column(struct buf *out, const char *head)
{
    buf_adds(out, "<th scope=\"col\">");
    html_text(out, head);
    buf_adds(out, "</th>");
}

void html_column_n(struct buf *out, const char *head, const char *unit)
{
    buf_adds(out, "<th scope=\"col\" class=\"n\">");
    html_text(out, head);
    buf_printf(out, unit ? ",&#160;%s</th>" : "</th>", unit);
}

void html_rows(struct buf *out)
{
    buf_adds(out, "</tr></thead>\n<tbody>\n");
}

void html_row(struct buf *out, enum html_row row, const char *name, size_t max)
{
    buf_adds(out, row == ROW_CHOSEN ? "<tr class=\"chosen\"><th scope=\"row\">" : "<tr><th scope=\"row\">");
    html_short(out, name, max);
    buf_adds(out, "</th>");
}

void html_row_end(struct buf *out)
{
    buf_adds(out, "</tr>\n");
}

void html_table_end(struct buf *out)
{
    buf_adds(out, "</tbody></table></div>\n");
}

static void put_number(struct buf *out, double v, int digits)
{
    if (isnan(v))
        buf_adds(out, "-");
    else
        buf_printf(out, fabs(v) < 1e15 ? "%s%.*f" : "%s%.*e", v < 0 ? "&#8722;" : "", digits, fabs(v));
}

void html_cell(struct buf *out, double v, int digits)
{
    buf_adds(out, "<td>");
    put_number(out, v, digits);
    buf_adds(out, "</td>");
}

void html_cell_int(struct buf *out, int64_t v)
{
    buf_printf(out, "<td>%lld</td>", (long long)v);
}

void html_cell_text(struct buf *out, const char *text)
{
    buf_adds(out, "<td class=\"t\">");
    html_text(out, text);
    buf_adds(out, "</td>");
}

void html_cell_error(struct buf *out, double v, double error)
{
    buf_adds(out, "<td>");
    put_number(out, v, 3);
    if (!isnan(v))
        buf_printf(out,
                   !(error > 0) ? "<span class=\"pm\"></span></td>" : "<span class=\"pm\"> &#177; %.3f</span></td>",
                   error);
    else
        buf_adds(out, "</td>");
}

/* ---- units ----------------------------------------------------------------- */

struct html_unit html_seconds_unit(double largest)
{
    return largest > 0 && largest < 1e-3 ? (struct html_unit){ "us", 1e-6, 0 }
           : largest < 1                 ? (struct html_unit){ "ms", 1e-3, 1 }
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

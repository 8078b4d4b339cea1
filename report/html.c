/* html.c - text, numbers, sizes and times as HTML. */
#include "base/parse.h"
#include "base/utf8.h"
#include "report/report_internal.h"

#include <math.h>
#include <string.h>

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
        default: buf_addc(out, (unsigned char)*s < 0x20 && *s != '\n' && *s != '\t' ? '?' : *s);
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

void html_real(struct buf *out, double v, int digits)
{
    if (isnan(v))
        buf_addc(out, '-');
    else
        buf_printf(out, "%.*f", digits, v);
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

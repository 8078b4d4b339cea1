/* report.c - the order of the page. */
#include "report/report.h"

#include "report/report_internal.h"

#include <string.h>

static void put_head(struct buf *html, const struct report *r)
{
    struct buf headline = { 0 };

    report_headline(&headline, r);
    const char *title = strstr(buf_str(&headline), "<h1>");
    size_t n = title ? strcspn(title + 4, "<") : 0;
    buf_adds(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>EvicPress: ");
    buf_add(html, title ? title + 4 : "", n);
    buf_adds(html, "</title>\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n<style>\n");
    for (int i = 0; report_style[i]; i++)
        buf_adds(html, report_style[i]);
    buf_adds(html, chart_style);
    buf_adds(html, "</style>\n</head>\n<body>\n<header>\n<p class=\"eyebrow\">EvicPress report</p>\n");
    buf_add(html, buf_str(&headline), headline.n);
    html->failed |= buf_failed(&headline);
    buf_release(&headline);
}

/* Links to the sections, found by their headings. */
static void put_nav(struct buf *html, const struct buf *body)
{
    static const char heading[] = "<h2 id=\"";

    buf_adds(html, "<nav aria-label=\"Contents\">");
    for (const char *h = buf_str(body); (h = strstr(h, heading)); h++) {
        const char *id = h + strlen(heading), *text = strchr(id, '>') + 1;
        buf_printf(html, "<a href=\"#%.*s\">%.*s</a>", (int)strcspn(id, "\""), id, (int)strcspn(text, "<"), text);
    }
    buf_adds(html, "</nav>\n</header>\n<main>\n");
}

static void put_plan(struct buf *out, const struct report *r)
{
    if (!gain_known(r))
        return;
    buf_adds(out, "<section>\n<h2 id=\"plan\">The plan and its alternatives</h2>\n<div class=\"columns\">\n<figure>\n"
                  "<figcaption>Time to first token against quality</figcaption>\n");
    gain_svg(out, r);
    buf_adds(out, "<p class=\"note\">Up and to the left is better.</p>\n</figure>\n<div>\n");
    if (r->manifest)
        report_totals(out, r);
    if (r->frontier)
        gain_table(out, r);
    buf_adds(out, "</div></div>\n</section>\n");
}

static int put_where(struct buf *out, const struct report *r, struct err *err)
{
    buf_adds(out, "<section>\n<h2 id=\"tiers\">Tiers and times</h2>\n<div class=\"columns\">\n");
    int code = figure_ttft(out, r, err);
    buf_adds(out, "<div>\n");
    report_tiers(out, r);
    buf_adds(out, "</div></div>\n</section>\n");
    return code;
}

static int put_table(struct buf *out, const struct report *r, struct err *err)
{
    int code = 0;

    if (r->table->quality_train) {
        buf_adds(out, "<section>\n<h2 id=\"quality\">Quality</h2>\n<div class=\"figures\">\n");
        code = figure_quality(out, r, err);
        if (!code)
            code = figure_held_out(out, r, err);
        buf_adds(out, "</div>\n");
        if (!code)
            code = figure_datasets(out, r, err);
        buf_adds(out, "</section>\n");
    }
    if (!code)
        code = report_configs(out, r, err);
    if (!code)
        answers_examples(out, r);
    return code;
}

int report_write(const struct report *r, struct buf *html, struct err *err)
{
    struct buf body = { 0 };
    int code = 0;

    put_plan(&body, r);
    if (r->replay)
        report_replayed(&body, r->replay);
    if (r->manifest)
        code = put_where(&body, r, err);
    if (r->table && !code)
        code = put_table(&body, r, err);
    if (r->manifest && !code)
        report_contexts(&body, r, err);
    report_made(&body, r);
    put_head(html, r);
    put_nav(html, &body);
    buf_add(html, buf_str(&body), body.n);
    buf_adds(html, "</main>\n</body>\n</html>\n");
    html->failed |= buf_failed(&body);
    buf_release(&body);
    return code ? code : buf_failed(html) ? err_nomem(err) : 0;
}

/* In a file of its own a picture brings its style sheet and a background, for pages of any colour. Releases the
 * element. */
static int put_alone(struct buf *svg, struct buf *element, struct err *err)
{
    size_t begin = strcspn(buf_str(element), ">") + 1;

    buf_add(svg, buf_str(element), begin);
    buf_printf(svg, "\n<style>\n%ssvg{background:var(--paper)}\n</style>", chart_style);
    buf_adds(svg, buf_str(element) + begin);
    svg->failed |= buf_failed(element);
    buf_release(element);
    return buf_failed(svg) ? err_nomem(err) : 0;
}

int report_write_svg(const struct report *r, struct buf *svg, struct err *err)
{
    struct buf element = { 0 };

    if (!gain_known(r))
        return err_set(err, ERR_FORMAT, "there is no plan to draw: give a frontier, or a manifest of evp-plan");
    gain_svg(&element, r);
    return put_alone(svg, &element, err);
}

int report_sizes_svg(const struct report_size *at, int n, struct buf *svg, struct err *err)
{
    struct buf element = { 0 };

    priced_svg(&element, at, n);
    return put_alone(svg, &element, err);
}

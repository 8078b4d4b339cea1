/* show_methods.c - the compression methods, their parameters, and where they come from. */
#include "base/buf.h"
#include "base/parse.h"
#include "show/show.h"
#include "methods/method.h"

#include <math.h>

static const char *const kind[] = {
    [METHOD_BUDGET] = "budget", [METHOD_DROP] = "drop", [METHOD_MERGE] = "merge", [METHOD_QUANTISE] = "quantise"
};

/* What a value may be: "0..1", "2|4", "all|own". */
static void put_values(struct buf *out, const struct method_param *p)
{
    char number[TEXT_SHORT];

    for (int i = 0; p->words && p->words[i]; i++)
        buf_printf(out, "%s%s", i ? "|" : "", p->words[i]);
    for (int i = 0; p->only && !isnan(p->only[i]); i++)
        buf_printf(out, "%s%s", i ? "|" : "", text_real(number, p->only[i]));
    if (p->words || p->only)
        return;
    buf_printf(out, "%s..", text_real(number, p->min));
    buf_adds(out, text_real(number, p->max));
}

static void put_param(struct sheet *s, const struct method *m, const struct method_param *p)
{
    struct buf values = { 0 };
    char number[TEXT_SHORT];

    put_values(&values, p);
    sheet_text(s, NULL, m->name);
    sheet_text(s, NULL, p->name);
    sheet_text(s, NULL, buf_str(&values));
    sheet_text(s, NULL,
               isnan(p->otherwise) ? NULL
               : p->words          ? p->words[(int)p->otherwise]
                                   : text_real(number, p->otherwise));
    sheet_text(s, NULL,
               method_kind(m) == METHOD_QUANTISE ? "codes"
               : m->merge                        ? "values"
               : p->budget                       ? "numbers kept"
                                                 : "scores");
    sheet_text(s, NULL, p->help);
    buf_release(&values);
}

void show_methods(struct sheet *s)
{
    sheet_table(s, "methods", (const char *const[]){ "method", "stage", "what", "source" }, 4);
    for (int i = 0; method_registry[i]; i++) {
        const struct method *m = method_registry[i];
        sheet_text(s, NULL, m->name);
        sheet_text(s, NULL, kind[method_kind(m)]);
        sheet_text(s, NULL, m->summary);
        sheet_text(s, NULL, m->source);
    }
    sheet_table_end(s);
    sheet_table(s, "parameters", (const char *const[]){ "method", "parameter", "values", "default", "changes", "help" },
                6);
    for (int i = 0; method_registry[i]; i++)
        for (int k = 0; k < CONFIG_PARAMS && method_registry[i]->param[k].name; k++)
            put_param(s, method_registry[i], &method_registry[i]->param[k]);
    sheet_table_end(s);
}

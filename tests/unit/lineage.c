/* lineage.c - lineages of files that are made from each other night after night. */
#include "base/rows.h"

#include <criterion/criterion.h>

/* A lineage of `tool` with the lineages a and b, which may be NULL, as its inputs. */
static struct json *made_from(const char *tool, const struct json *a, const struct json *b)
{
    const struct json *from[] = { a, b };
    struct rows_made made = { .tool = tool, .from = from, .n_from = 2 };
    struct buf text = { 0 };
    struct err err;

    rows_made_to_text(&made, &text);
    struct json *out = json_parse(buf_str(&text), text.n, &err);
    cr_assert(out, "%s", err.msg);
    buf_release(&text);
    return out;
}

/* A profile grows with lists of cells that are made from its own table, night after night; its lineage does not. */
Test(lineage, does_not_grow)
{
    struct json *contexts = made_from("import", NULL, NULL), *profile = made_from("profile", contexts, NULL);
    struct buf text = { 0 }, before = { 0 };

    for (int night = 0; night < 40; night++) {
        struct json *table = made_from("score", profile, NULL), *cells = made_from("aim", table, contexts);
        json_free(profile);
        profile = made_from("profile", contexts, cells);
        json_free(table);
        json_free(cells);
        buf_clear(&text);
        json_print(&text, profile);
        if (night > 0)
            cr_assert_str_eq(buf_str(&text), buf_str(&before));
        buf_clear(&before);
        buf_adds(&before, buf_str(&text));
    }
    cr_assert_str_eq(buf_str(&text),
                     "{\"tool\":\"profile\",\"args\":[],\"from\":[{\"tool\":\"import\",\"args\":[],\"from\":[]},"
                     "{\"tool\":\"aim\",\"args\":[],\"from\":[{\"tool\":\"score\",\"args\":[],\"from\":[]},"
                     "{\"tool\":\"import\",\"args\":[],\"from\":[]}]}]}");
    json_free(profile);
    json_free(contexts);
    buf_release(&text);
    buf_release(&before);
}

/* The direct input of the same tool stays. */
Test(lineage, of_one_tool)
{
    struct json *a = made_from("import", NULL, NULL), *b = made_from("import", a, NULL),
                *c = made_from("import", b, NULL);
    struct buf text = { 0 };

    json_print(&text, c);
    cr_assert_str_eq(buf_str(&text),
                     "{\"tool\":\"import\",\"args\":[],\"from\":[{\"tool\":\"import\",\"args\":[],\"from\":[]}]}");
    json_free(a);
    json_free(b);
    json_free(c);
    buf_release(&text);
}

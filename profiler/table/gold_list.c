/* gold_list.c - the right answers to a question as a list in JSON. */
#include "profiler/table/gold_list.h"

#include "base/json.h"
#include "base/utf8.h"

#include <string.h>

/* The length of the white space at the beginning of s. */
static size_t blank(const char *s)
{
    size_t n = strlen(s), at = 0;
    uint32_t c;

    for (int length; at < n && (length = utf8_decode(s + at, n - at, &c)) > 0 && utf8_is_space(c);)
        at += (size_t)length;
    return at;
}

static bool same_words(const char *a, const char *b)
{
    a += blank(a);
    b += blank(b);
    while (*a && *b) {
        size_t in_a = blank(a), in_b = blank(b);
        if (!in_a != !in_b)
            break;
        a += in_a;
        b += in_b;
        if (!in_a && *a++ != *b++)
            return false;
    }
    return !a[blank(a)] && !b[blank(b)];
}

int gold_find(const struct context *c, const char *question, char **json, struct err *err)
{
    struct buf out = { 0 };
    struct json_out w = { .buf = &out };

    *json = NULL;
    for (int i = 0; i < c->inputs.n; i++) {
        const struct context_input *in = &c->inputs.at[i];
        if (in->n_answers == 0 || !same_words(in->question, question))
            continue;
        json_begin(&w, NULL, '[');
        for (int a = 0; a < in->n_answers; a++)
            json_put_text(&w, NULL, in->answer[a]);
        json_end(&w, ']');
        *json = buf_take(&out);
        return *json ? 0 : err_nomem(err);
    }
    return 0;
}

bool gold_is_list(const char *json)
{
    struct err ignored;
    struct json *list = *json ? json_parse(json, strlen(json), &ignored) : NULL;
    bool good = !*json || (json_is_array(list) && json_count(list) > 0);

    for (const struct json *a = json_first(list); a && good; a = json_next(a))
        good = json_is_text(a);
    json_free(list);
    return good;
}

/* json_write.c - JSON written, member by member, without a tree. */
#include "base/json.h"

#include "base/parse.h"
#include "base/utf8.h"

#include <string.h>

static void put_string(struct buf *b, const char *s, size_t n)
{
    size_t start = 0;

    buf_addc(b, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
            continue;
        buf_add(b, s + start, i - start);
        start = i + 1;
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c == '\n')
            buf_adds(b, "\\n");
        else if (c == '\t')
            buf_adds(b, "\\t");
        else if (c == '\r')
            buf_adds(b, "\\r");
        else
            buf_printf(b, "\\u%04x", c);
    }
    buf_add(b, s + start, n - start);
    buf_addc(b, '"');
}

static void before(struct json_out *w, const char *name)
{
    if (w->comma)
        buf_addc(w->buf, ',');
    w->comma = true;
    if (!name)
        return;
    put_string(w->buf, name, strlen(name));
    buf_addc(w->buf, ':');
}

void json_begin(struct json_out *w, const char *name, char bracket)
{
    before(w, name);
    buf_addc(w->buf, bracket);
    w->comma = false;
}

void json_end(struct json_out *w, char bracket)
{
    buf_addc(w->buf, bracket);
    w->comma = true;
}

void json_put_text(struct json_out *w, const char *name, const char *s)
{
    if (s)
        json_put_text_n(w, name, s, strlen(s));
    else
        json_put_null(w, name);
}

void json_put_text_n(struct json_out *w, const char *name, const char *s, size_t n)
{
    before(w, name);
    if (utf8_valid(s, n)) {
        put_string(w->buf, s, n);
        return;
    }
    struct buf clean = { 0 };
    utf8_clean(&clean, s, n);
    if (buf_failed(&clean))
        w->buf->failed = true;
    else
        put_string(w->buf, buf_str(&clean), clean.n);
    buf_release(&clean);
}

void json_put_int(struct json_out *w, const char *name, int64_t v)
{
    char text[TEXT_SHORT], *at = text + sizeof(text) - 1;
    uint64_t rest = v < 0 ? -(uint64_t)v : (uint64_t)v;

    *at = '\0';
    for (; at == text + sizeof(text) - 1 || rest; rest /= 10)
        *--at = (char)('0' + rest % 10);
    if (v < 0)
        *--at = '-';
    json_put_raw(w, name, at);
}

void json_put_real(struct json_out *w, const char *name, double v)
{
    char text[TEXT_SHORT];

    json_put_raw(w, name, text_real(text, v));
}

void json_put_bool(struct json_out *w, const char *name, bool v)
{
    json_put_raw(w, name, v ? "true" : "false");
}

void json_put_null(struct json_out *w, const char *name)
{
    json_put_raw(w, name, "null");
}

void json_put_raw(struct json_out *w, const char *name, const char *json)
{
    before(w, name);
    buf_adds(w->buf, json);
}

void json_put_node(struct json_out *w, const char *name, const struct json *v)
{
    if (json_is_object(v) || json_is_array(v)) {
        bool object = json_is_object(v);
        json_begin(w, name, object ? '{' : '[');
        for (const struct json *m = json_first(v); m; m = json_next(m))
            json_put_node(w, object ? json_name(m) : NULL, m);
        json_end(w, object ? '}' : ']');
    } else if (json_is_text(v))
        json_put_text(w, name, json_text(v));
    else if (json_is_number(v))
        json_put_real(w, name, json_real(v));
    else if (json_is_bool(v))
        json_put_bool(w, name, json_true(v));
    else
        json_put_null(w, name);
}

void json_print(struct buf *out, const struct json *v)
{
    struct json_out w = { .buf = out };

    json_put_node(&w, NULL, v);
}

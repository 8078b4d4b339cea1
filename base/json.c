/* json.c - reading is cJSON plus two refusals (NUL characters, a second value); writing is our own, because cJSON
 * builds a tree first and prints numbers with 17 digits.
 */
#include "base/json.h"

#include "base/parse.h"
#include "base/utf8.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* struct json is cJSON under another name, so that only this file knows the library. */
static const cJSON *node(const struct json *v)
{
    return (const cJSON *)v;
}

/* ---- reading ----------------------------------------------------------- */

/* Is there a \u0000 escape? Backslashes come in pairs, so a preceding pair is skipped whole. */
static bool has_nul(const char *s, size_t n)
{
    const char *end = s + n;

    if (memchr(s, '\0', n))
        return true;
    for (s = memchr(s, '\\', n); s; s = memchr(s + 2, '\\', (size_t)(end - s) - 2)) {
        if (end - s < 6)
            return false;
        if (memcmp(s, "\\u0000", 6) == 0)
            return true;
    }
    return false;
}

struct json *json_parse(const char *text, size_t n, struct err *err)
{
    const char *end = NULL;

    if (has_nul(text, n)) {
        err_set(err, ERR_FORMAT, "a NUL character in JSON");
        return NULL;
    }
    cJSON *v = cJSON_ParseWithLengthOpts(text, n, &end, 0);
    if (!v) {
        size_t at = end ? (size_t)(end - text) : 0;
        err_set(err, ERR_FORMAT, n == 0 ? "empty where JSON is expected" : "malformed JSON at byte %zu", at);
        return NULL;
    }
    for (; end < text + n; end++) {
        if (strchr(" \t\r\n", *end))
            continue;
        err_set(err, ERR_FORMAT, "more than one JSON value, at byte %zu", (size_t)(end - text));
        cJSON_Delete(v);
        return NULL;
    }
    return (struct json *)v;
}

void json_free(struct json *root)
{
    cJSON_Delete((cJSON *)root);
}

const struct json *json_get(const struct json *object, const char *name)
{
    if (!cJSON_IsObject(node(object)))
        return NULL;
    const cJSON *m = node(object)->child; /* most names differ in the first letter */
    while (m && (m->string[0] != name[0] || strcmp(m->string, name) != 0))
        m = m->next;
    return (const struct json *)m;
}

const struct json *json_at(const struct json *array, int i)
{
    return cJSON_IsArray(node(array)) ? (const struct json *)cJSON_GetArrayItem(node(array), i) : NULL;
}

const struct json *json_first(const struct json *v)
{
    return json_is_array(v) || json_is_object(v) ? (const struct json *)node(v)->child : NULL;
}

const struct json *json_next(const struct json *member)
{
    return member ? (const struct json *)node(member)->next : NULL;
}

const char *json_name(const struct json *member)
{
    return member ? node(member)->string : NULL;
}

int json_count(const struct json *v)
{
    return json_is_array(v) || json_is_object(v) ? cJSON_GetArraySize(node(v)) : 0;
}

bool json_is_object(const struct json *v)
{
    return cJSON_IsObject(node(v));
}

bool json_is_array(const struct json *v)
{
    return cJSON_IsArray(node(v));
}

bool json_is_text(const struct json *v)
{
    return cJSON_IsString(node(v));
}

bool json_is_number(const struct json *v)
{
    return cJSON_IsNumber(node(v));
}

bool json_is_bool(const struct json *v)
{
    return cJSON_IsBool(node(v));
}

bool json_is_null(const struct json *v)
{
    return cJSON_IsNull(node(v));
}

const char *json_text(const struct json *v)
{
    return json_is_text(v) ? node(v)->valuestring : NULL;
}

double json_real(const struct json *v)
{
    return json_is_number(v) ? node(v)->valuedouble : (double)NAN;
}

bool json_true(const struct json *v)
{
    return cJSON_IsTrue(node(v));
}

static int missing(const char *name, const struct json *v, const char *what, struct err *err)
{
    if (!v)
        return err_set(err, ERR_FORMAT, "field '%s' is missing", name);
    return err_set(err, ERR_FORMAT, "field '%s' is not %s", name, what);
}

static int to_text(const struct json *v, const char *name, const char **out, struct err *err)
{
    if (!json_is_text(v))
        return missing(name, v, "a string", err);
    *out = json_text(v);
    return 0;
}

int json_want_text(const struct json *object, const char *name, const char **out, struct err *err)
{
    return to_text(json_get(object, name), name, out, err);
}

int json_to_real(const struct json *v, const char *name, double *out, struct err *err)
{
    if (!json_is_number(v) || !isfinite(json_real(v)))
        return missing(name, v, "a number", err);
    *out = json_real(v);
    return 0;
}

int json_to_int(const struct json *v, const char *name, int64_t *out, struct err *err)
{
    double real;

    if (json_to_real(v, name, &real, err))
        return err->code;
    if (real != trunc(real) || fabs(real) > 0x1p53)
        return missing(name, v, "a whole number", err);
    *out = (int64_t)real;
    return 0;
}

int json_want_real(const struct json *object, const char *name, double *out, struct err *err)
{
    return json_to_real(json_get(object, name), name, out, err);
}

int json_want_int(const struct json *object, const char *name, int64_t *out, struct err *err)
{
    return json_to_int(json_get(object, name), name, out, err);
}

static bool absent(const struct json *v)
{
    return !v || json_is_null(v);
}

int json_may_text(const struct json *object, const char *name, const char **out, struct err *err)
{
    const struct json *v = json_get(object, name);

    return absent(v) ? 0 : to_text(v, name, out, err);
}

int json_may_real(const struct json *object, const char *name, double *out, struct err *err)
{
    const struct json *v = json_get(object, name);

    return absent(v) ? 0 : json_to_real(v, name, out, err);
}

int json_may_int(const struct json *object, const char *name, int64_t *out, struct err *err)
{
    const struct json *v = json_get(object, name);

    return absent(v) ? 0 : json_to_int(v, name, out, err);
}

/* ---- writing ----------------------------------------------------------- */

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

/* Writes the comma and name of a member or an element. */
static void begin_value(struct json_out *w, const char *name)
{
    if (w->comma)
        buf_addc(w->buf, ',');
    w->comma = true;
    if (name) {
        put_string(w->buf, name, strlen(name));
        buf_addc(w->buf, ':');
    }
}

void json_begin(struct json_out *w, const char *name, char bracket)
{
    begin_value(w, name);
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
    begin_value(w, name);
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
    char text[TEXT_SHORT];

    snprintf(text, sizeof(text), "%lld", (long long)v);
    json_put_raw(w, name, text);
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
    begin_value(w, name);
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

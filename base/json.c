/* json.c - JSON read. A tree is one allocation: the nodes, whose number the separators in the text limit, then the
 * strings, which are never longer than the text. Manifests of a million rows are read through this.
 */
#include "base/json.h"

#include "base/parse.h"
#include "base/utf8.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 1000, NUMBER_MAX = 1024 }; // a deeper text would use up the stack; bytes of a number

enum kind { KIND_NULL, KIND_FALSE, KIND_TRUE, KIND_NUMBER, KIND_TEXT, KIND_ARRAY, KIND_OBJECT };

struct json {
    const struct json *next; // member of the same array or object
    const char *name;        // of a member of an object
    union {
        const struct json *first;
        const char *text;
        double number;
    } is;
    enum kind kind;
    int count; // of members
};

/* ---- reading ----------------------------------------------------------- */

/* Where something is wrong, functions return false and `at` is there. */
struct parser {
    const char *text;
    size_t n, at;
    struct json *node; // the next unused one
    char *string;      // where the next string goes
    int depth;
    bool has_nul;
};

/* A text has at most one value more than separators, and no more values than bytes. In a short text nothing is counted;
 * separators in strings count too. */
static size_t values_max(const char *text, size_t n)
{
    enum { SHORT = 1 << 12 };
    size_t values = 1;

    if (n < SHORT)
        return n + 1;
    for (size_t i = 0; i < n; i++)
        values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return values;
}

static void skip_blanks(struct parser *p)
{
    while (p->at < p->n && (unsigned char)p->text[p->at] <= ' ')
        p->at++;
}

/* Goes on if `c` comes next. */
static bool take(struct parser *p, char c)
{
    bool is = p->at < p->n && p->text[p->at] == c;

    p->at += is;
    return is;
}

static bool take_word(struct parser *p, const char *word)
{
    size_t n = strlen(word);
    bool is = p->n - p->at >= n && memcmp(p->text + p->at, word, n) == 0;

    p->at += is ? n : 0;
    return is;
}

/* ---- strings ---- */

/* The four hex digits that come next; -1. */
static int take_hex(struct parser *p)
{
    int v = 0;

    for (int i = 0; i < 4; i++, p->at++) {
        char c = p->at < p->n ? p->text[p->at] : '\0';
        if (c >= '0' && c <= '9')
            v = v * 16 + c - '0';
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            v = v * 16 + (c | 32) - 'a' + 10;
        else
            return -1;
    }
    return v;
}

/* What follows \u: one unit of UTF-16, or two. */
static bool take_unit(struct parser *p)
{
    int high = take_hex(p), low = -1;

    if (high == 0)
        p->has_nul = true;
    if (high <= 0 || (high >= 0xdc00 && high < 0xe000))
        return false;
    if (high < 0xd800 || high >= 0xe000) {
        p->string += utf8_encode((uint32_t)high, p->string);
        return true;
    }
    if (take_word(p, "\\u"))
        low = take_hex(p);
    if (low < 0xdc00 || low >= 0xe000)
        return false;
    uint32_t point = 0x10000 + ((uint32_t)(high - 0xd800) << 10 | (uint32_t)(low - 0xdc00));
    p->string += utf8_encode(point, p->string);
    return true;
}

static bool take_escape(struct parser *p)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = p->at < p->n ? p->text[p->at] : '\0';
    const char *known = c ? strchr(from, c) : NULL;

    if (known) {
        p->at++;
        *p->string++ = to[known - from];
        return true;
    }
    return take(p, 'u') && take_unit(p);
}

/* After the quote that opens a string. */
static bool take_string(struct parser *p, const char **string)
{
    const char *from = p->text + p->at, *end = memchr(from, '"', p->n - p->at);
    size_t n = end ? (size_t)(end - from) : 0;

    *string = p->string;
    if (!end)
        return false;
    if (!memchr(from, '\\', n)) {
        memcpy(p->string, from, n);
        p->string += n;
        p->at += n + 1;
    } else
        while (!take(p, '"')) {
            if (p->at == p->n || (take(p, '\\') && !take_escape(p)))
                return false;
            if (p->at < p->n && p->text[p->at] != '"' && p->text[p->at] != '\\')
                *p->string++ = p->text[p->at++];
        }
    *p->string++ = '\0';
    return true;
}

/* ---- numbers ---- */

/* strtod() reads the point of the process's locale. */
static bool read_slowly(const char *text, size_t n, double *v)
{
    char number[NUMBER_MAX], *end, *point;

    if (n >= sizeof(number))
        return false;
    memcpy(number, text, n);
    number[n] = '\0';
    point = strchr(number, '.');
    if (point)
        *point = *localeconv()->decimal_point;
    *v = strtod(number, &end);
    return end == number + n;
}

/* Digits go into *digits, as far as 64 bits hold them; returns how many there were. */
static int take_digits(struct parser *p, uint64_t *digits, bool *exact)
{
    int n = 0;

    for (; p->at < p->n && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++, n++) {
        *exact = *exact && *digits < UINT64_MAX / 10 - 1;
        *digits = *exact ? *digits * 10 + (uint64_t)(p->text[p->at] - '0') : *digits;
    }
    return n;
}

static bool take_number(struct parser *p, double *v)
{
    size_t start = p->at;
    uint64_t digits = 0, power = 0;
    bool minus = take(p, '-'), exact = true;
    int n = take_digits(p, &digits, &exact), behind = take(p, '.') ? take_digits(p, &digits, &exact) : 0;

    if (n == 0)
        return false;
    if (p->at < p->n && (p->text[p->at] | 32) == 'e') {
        p->at++;
        bool down = take(p, '-');
        if (!down)
            take(p, '+');
        if (take_digits(p, &power, &exact) == 0)
            return false;
        exact = exact && power < 100;
        behind = exact ? down ? behind + (int)power : behind - (int)power : behind;
    }
    if (!exact || !real_of_digits(digits, -behind, v))
        return read_slowly(p->text + start, p->at - start, v);
    *v = minus ? -*v : *v;
    return true;
}

/* ---- values ---- */

static struct json *take_value(struct parser *p);

/* After the bracket that opens an array or object. */
static bool take_members(struct parser *p, struct json *v, char close)
{
    const struct json **to = &v->is.first;

    skip_blanks(p);
    if (take(p, close))
        return true;
    do {
        const char *name = NULL;
        skip_blanks(p);
        if (close == '}') {
            if (!take(p, '"') || !take_string(p, &name))
                return false;
            skip_blanks(p);
            if (!take(p, ':'))
                return false;
            skip_blanks(p);
        }
        struct json *member = take_value(p);
        if (!member)
            return false;
        member->name = name;
        *to = member;
        to = &member->next;
        v->count++;
        skip_blanks(p);
    } while (take(p, ','));
    return take(p, close);
}

static bool take_list(struct parser *p, struct json *v, char close)
{
    v->kind = close == ']' ? KIND_ARRAY : KIND_OBJECT;
    v->is.first = NULL;
    if (p->depth == DEPTH_MAX)
        return false;
    p->depth++;
    bool good = take_members(p, v, close);
    p->depth--;
    return good;
}

/* A value that is no number. */
static bool take_other(struct parser *p, struct json *v)
{
    switch (p->at < p->n ? p->text[p->at] : '\0') {
    case '"': v->kind = KIND_TEXT; return take(p, '"') && take_string(p, &v->is.text);
    case '{': return take(p, '{') && take_list(p, v, '}');
    case '[': return take(p, '[') && take_list(p, v, ']');
    case 't': v->kind = KIND_TRUE; return take_word(p, "true");
    case 'f': v->kind = KIND_FALSE; return take_word(p, "false");
    case 'n': v->kind = KIND_NULL; return take_word(p, "null");
    default: return false;
    }
}

/* NULL where something is wrong. */
static struct json *take_value(struct parser *p)
{
    struct json *v = p->node++;
    bool number = p->at < p->n && (p->text[p->at] == '-' || (p->text[p->at] >= '0' && p->text[p->at] <= '9'));

    *v = (struct json){ .kind = KIND_NUMBER };
    return (number ? take_number(p, &v->is.number) : take_other(p, v)) ? v : NULL;
}

/* The whole text must be one value. */
static int take_text(struct parser *p, struct err *err)
{
    if (memchr(p->text, '\0', p->n))
        return err_set(err, ERR_FORMAT, "a NUL character in JSON");
    if (p->n == 0)
        return err_set(err, ERR_FORMAT, "empty where JSON is expected");
    if (p->n >= 3 && memcmp(p->text, "\xef\xbb\xbf", 3) == 0)
        p->at = 3;
    skip_blanks(p);
    if (!take_value(p))
        return p->has_nul ? err_set(err, ERR_FORMAT, "a NUL character in JSON")
                          : err_set(err, ERR_FORMAT, "malformed JSON at byte %zu", p->at);
    while (p->at < p->n && strchr(" \t\r\n", p->text[p->at]))
        p->at++;
    return p->at == p->n ? 0 : err_set(err, ERR_FORMAT, "more than one JSON value, at byte %zu", p->at);
}

struct json *json_parse(const char *text, size_t n, struct err *err)
{
    size_t nodes = values_max(text, n) * sizeof(struct json);
    struct json *root = malloc(nodes + n + 1);
    if (!root) {
        err_nomem(err);
        return NULL;
    }
    struct parser p = { .text = text, .n = n, .node = root, .string = (char *)root + nodes };
    if (!take_text(&p, err))
        return root;
    free(root);
    return NULL;
}

void json_free(struct json *root)
{
    free(root);
}

const struct json *json_get(const struct json *object, const char *name)
{
    for (const struct json *v = json_is_object(object) ? object->is.first : NULL; v; v = v->next)
        if (v->name[0] == name[0] && strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

const struct json *json_at(const struct json *array, int i)
{
    const struct json *v = json_is_array(array) && i >= 0 ? array->is.first : NULL;

    for (; v && i > 0; i--)
        v = v->next;
    return v;
}

const struct json *json_first(const struct json *v)
{
    return json_is_array(v) || json_is_object(v) ? v->is.first : NULL;
}

const struct json *json_next(const struct json *member)
{
    return member ? member->next : NULL;
}

const char *json_name(const struct json *member)
{
    return member ? member->name : NULL;
}

int json_count(const struct json *v)
{
    return v ? v->count : 0;
}

bool json_is_object(const struct json *v)
{
    return v && v->kind == KIND_OBJECT;
}

bool json_is_array(const struct json *v)
{
    return v && v->kind == KIND_ARRAY;
}

bool json_is_text(const struct json *v)
{
    return v && v->kind == KIND_TEXT;
}

bool json_is_number(const struct json *v)
{
    return v && v->kind == KIND_NUMBER;
}

bool json_is_bool(const struct json *v)
{
    return v && (v->kind == KIND_TRUE || v->kind == KIND_FALSE);
}

bool json_is_null(const struct json *v)
{
    return v && v->kind == KIND_NULL;
}

const char *json_text(const struct json *v)
{
    return json_is_text(v) ? v->is.text : NULL;
}

double json_real(const struct json *v)
{
    return json_is_number(v) ? v->is.number : (double)NAN;
}

bool json_true(const struct json *v)
{
    return v && v->kind == KIND_TRUE;
}

static int missing(const char *name, const struct json *v, const char *what, struct err *err)
{
    if (!v)
        return err_set(err, ERR_FORMAT, "field '%s' is missing", name);
    return err_set(err, ERR_FORMAT, "field '%s' is not %s", name, what);
}

int json_want_text(const struct json *object, const char *name, const char **out, struct err *err)
{
    const struct json *v = json_get(object, name);

    if (!json_is_text(v))
        return missing(name, v, "a string", err);
    *out = json_text(v);
    return 0;
}

int json_want_real(const struct json *object, const char *name, double *out, struct err *err)
{
    const struct json *v = json_get(object, name);

    if (!json_is_number(v) || !isfinite(json_real(v)))
        return missing(name, v, "a number", err);
    *out = json_real(v);
    return 0;
}

int json_want_int(const struct json *object, const char *name, int64_t *out, struct err *err)
{
    double v;

    if (json_want_real(object, name, &v, err))
        return err->code;
    if (v != trunc(v) || fabs(v) > 0x1p53)
        return missing(name, json_get(object, name), "a whole number", err);
    *out = (int64_t)v;
    return 0;
}

static bool absent(const struct json *object, const char *name)
{
    const struct json *v = json_get(object, name);

    return !v || json_is_null(v);
}

int json_may_text(const struct json *object, const char *name, const char **out, struct err *err)
{
    return absent(object, name) ? 0 : json_want_text(object, name, out, err);
}

int json_may_real(const struct json *object, const char *name, double *out, struct err *err)
{
    return absent(object, name) ? 0 : json_want_real(object, name, out, err);
}

int json_may_int(const struct json *object, const char *name, int64_t *out, struct err *err)
{
    return absent(object, name) ? 0 : json_want_int(object, name, out, err);
}

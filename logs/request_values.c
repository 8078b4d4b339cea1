/* request_values.c - counts brackets outside of texts. A line that no value would have after the one before it shows
 * that the value was cut: it is given out as it is.
 */
#include "logs/request_values.h"

#include <stdbool.h>
#include <string.h>

enum { VALUE_MAX = 256 << 20 }; // bytes

static const char blanks[] = " \t", between[] = " \t,[]";

/* The quote that ends a text; NULL: it is not on this line. */
static const char *text_end(const char *at, const char *stop)
{
    for (; at < stop && *at != '"'; at++)
        at += *at == '\\';
    return at < stop ? at : NULL;
}

/* The depth of brackets after a line; 0: the value ends, at *end; -1: the line ends within a text. */
static int depth_after(const char *line, const char *stop, int depth, const char **end)
{
    for (*end = line; *end < stop; ++*end) {
        if (**end == '"') {
            *end = text_end(*end + 1, stop);
            if (!*end)
                return -1;
        }
        depth += (**end == '{' || **end == '[') - (**end == '}' || **end == ']');
        if (depth <= 0) {
            ++*end;
            return 0;
        }
    }
    return depth;
}

static char last_of(const char *line, size_t n)
{
    while (n > 0 && strchr(" \t\n", line[n - 1]))
        n--;
    return n > 0 ? line[n - 1] : '\0';
}

/* May a line that begins so come next in an open value? */
static bool may_follow(const struct request_values *v, char first)
{
    char last = last_of(v->open.at, v->open.n);

    const char *may = last == '{' ? "\"}" : last != ',' && last != '[' ? ",}]" : v->depth == 1 ? "\"" : NULL;
    return may ? strchr(may, first) != NULL : !strchr(",}:", first);
}

static int give(struct request_values *v, struct err *err)
{
    size_t n = v->open.n;

    if (buf_failed(&v->open))
        return err_nomem(err);
    v->open.n = 0; // the bytes stay
    return n ? v->each(v->arg, v->open.at, n, err) : 0;
}

static int begin(struct request_values *v, const char *line, size_t n, struct err *err)
{
    const char *at = line + strspn(line, between), *stop = line + n, *end;

    if (at == stop && line + strspn(line, blanks) < stop)
        return 0;
    if (*at != '{' || (at == line && last_of(line, n) == '}'))
        return v->each(v->arg, line, n, err);
    v->depth = depth_after(at, stop, 0, &end);
    bool ends = v->depth == 0 && end + strspn(end, between) == stop;
    if (!ends && (v->depth <= 0 || !strchr("{[,", last_of(line, n))))
        return v->each(v->arg, line, n, err);
    buf_add(&v->open, at, (size_t)(end - at));
    return ends ? give(v, err) : 0;
}

int request_values_line(struct request_values *v, const char *line, size_t n, struct err *err)
{
    const char *at = line + strspn(line, blanks), *stop = line + n, *end;

    if (v->open.n == 0)
        return begin(v, line, n, err);
    if (at == stop)
        return 0;
    int depth = may_follow(v, *at) && v->open.n + n < VALUE_MAX ? depth_after(at, stop, v->depth, &end) : -1;
    if (depth < 0) {
        int code = give(v, err);
        return code ? code : begin(v, line, n, err);
    }
    buf_addc(&v->open, '\n');
    buf_add(&v->open, at, (size_t)(end - at));
    v->depth = depth;
    if (depth > 0)
        return 0;
    int code = give(v, err);
    return code || end + strspn(end, between) == stop ? code : begin(v, end, (size_t)(stop - end), err);
}

int request_values_end(struct request_values *v, struct err *err)
{
    return give(v, err);
}

void request_values_release(struct request_values *v)
{
    buf_release(&v->open);
}

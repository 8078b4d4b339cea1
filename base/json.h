/* json.h - JSON read with cJSON, and written straight into a buffer.
 *
 * Reading: json_parse() gives a tree; json_get()/json_at() walk it; the typed getters report errors as one sentence
 * ("field 'drop' is not a number"), which the caller wraps with file and line. Strings are borrowed from the tree. A
 * text with "\u0000" is refused, because strings here end at a NUL.
 *
 * Writing: no tree. Members appear in the order they are added, numbers in their shortest exact form, strings with
 * malformed UTF-8 replaced by U+FFFD, so the same values give the same bytes.
 *
 *     struct json_out w = { .buf = &b };
 *     json_begin(&w, NULL, '{');
 *     json_put_text(&w, "id", id);
 *     json_begin(&w, "inputs", '[');
 *     json_put_int(&w, NULL, 3);
 *     json_end(&w, ']');
 *     json_end(&w, '}');
 */
#ifndef EVP_JSON_H
#define EVP_JSON_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json; // a node of a parsed tree

/* NULL with ERR_FORMAT unless the n bytes are exactly one JSON value. Free the root with json_free(). */
struct json *json_parse(const char *text, size_t n, struct err *err);
void json_free(struct json *root);

/* Lookup: a NULL node, wrong type or absence gives NULL. Names match exactly; of two equal names the first counts. */
const struct json *json_get(const struct json *object, const char *name);
const struct json *json_at(const struct json *array, int i); // O(i): walk arrays with json_first/json_next
const struct json *json_first(const struct json *array_or_object);
const struct json *json_next(const struct json *member);
const char *json_name(const struct json *member); // its name in its object
int json_count(const struct json *array_or_object);

bool json_is_object(const struct json *v);
bool json_is_array(const struct json *v);
bool json_is_text(const struct json *v);
bool json_is_number(const struct json *v);
bool json_is_bool(const struct json *v);
bool json_is_null(const struct json *v);     // an explicit null, not absence
const char *json_text(const struct json *v); // NULL unless a string
double json_real(const struct json *v);      // NAN unless a number
bool json_true(const struct json *v);

/* The member `name` of an object; ERR_FORMAT if it is missing or of another type. json_want_int also refuses fractions
 * and integers beyond 2^53, which a double cannot hold exactly. */
int json_want_text(const struct json *object, const char *name, const char **out, struct err *err) MUST_CHECK;
int json_want_real(const struct json *object, const char *name, double *out, struct err *err) MUST_CHECK;
int json_want_int(const struct json *object, const char *name, int64_t *out, struct err *err) MUST_CHECK;

/* The same for a value; `name` is for messages; NULL counts as missing. */
int json_to_real(const struct json *v, const char *name, double *out, struct err *err) MUST_CHECK;
int json_to_int(const struct json *v, const char *name, int64_t *out, struct err *err) MUST_CHECK;

/* Like json_want_*, but absence or null leaves *out unchanged. */
int json_may_text(const struct json *object, const char *name, const char **out, struct err *err) MUST_CHECK;
int json_may_real(const struct json *object, const char *name, double *out, struct err *err) MUST_CHECK;
int json_may_int(const struct json *object, const char *name, int64_t *out, struct err *err) MUST_CHECK;

/* Prints a parsed node compactly (member order kept). */
void json_print(struct buf *out, const struct json *v);

struct json_out {
    struct buf *buf;
    bool comma; // the next member needs a comma before it
};

/* `name` is NULL inside arrays and at the top. `bracket` is '{' or '[', '}' or ']'. */
void json_begin(struct json_out *w, const char *name, char bracket);
void json_end(struct json_out *w, char bracket);
void json_put_text(struct json_out *w, const char *name, const char *s); // NULL writes null
void json_put_text_n(struct json_out *w, const char *name, const char *s, size_t n);
void json_put_int(struct json_out *w, const char *name, int64_t v);
void json_put_real(struct json_out *w, const char *name, double v); // nan and infinities write null
void json_put_bool(struct json_out *w, const char *name, bool v);
void json_put_null(struct json_out *w, const char *name);
void json_put_node(struct json_out *w, const char *name, const struct json *v); // NULL writes null
void json_put_raw(struct json_out *w, const char *name, const char *json);      // already JSON

#endif

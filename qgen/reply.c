#include "qgen/reply.h"

#include "base/json.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MOST = 4,   /* lists in objects in lists: no model nests deeper */
    STARTS_MOST = 64, /* brackets tried as the start of JSON in a reply; bounds the work on hostile text */
    COMPLAINT_MOST = 200,
    SECRET_LEAST = 8, /* characters in a row that give a key away; a shorter key ("EMPTY", "none") is none */
};

/* ---- secrets ------------------------------------------------------------ */

/* Length of the longest run at s that stands somewhere in the secret. */
static size_t shared_run(const char *s, const char *secret)
{
    size_t longest = 0;

    for (; *secret; secret++) {
        size_t n = 0;
        while (s[n] && s[n] == secret[n])
            n++;
        longest = n > longest ? n : longest;
    }
    return longest;
}

/* Services repeat the key in their complaints, whole or in part. */
static void hide(char *s, const char *secret)
{
    while (secret && *s) {
        size_t n = shared_run(s, secret);
        if (n >= SECRET_LEAST)
            memset(s, '*', n);
        s += n >= SECRET_LEAST ? n : 1;
    }
}

/* ---- questions in JSON -------------------------------------------------- */

/* Without "1. ", "2) ", "- ", "* ", "Q3: " and quotation marks in front. */
static const char *without_number(const char *s)
{
    const char *p = s;

    p += strspn(p, " \t\r\n-*\"");
    const char *number = p + (*p == 'Q');
    size_t digits = strspn(number, "0123456789");
    if (digits && digits <= 3 && strchr(".):", number[digits]) && number[digits] && number[digits + 1] == ' ')
        p = number + digits + 1;
    return p;
}

static int take(struct asked_list *list, size_t place, const char *s, struct err *err)
{
    s = without_number(s);
    return asked_add(list, s, strlen(s), place, NULL, err);
}

static int collect(struct asked_list *list, size_t place, const struct json *v, int depth, struct err *err);

static int collect_object(struct asked_list *list, size_t place, const struct json *v, int depth, struct err *err)
{
    static const char *const name[] = { "question", "text", "q" };

    if (json_is_array(json_get(v, "questions")))
        return collect(list, place, json_get(v, "questions"), depth + 1, err);
    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
        if (json_is_text(json_get(v, name[i])))
            return take(list, place, json_text(json_get(v, name[i])), err);
    for (const struct json *m = json_first(v); m; m = json_next(m))
        if ((json_is_array(m) || json_is_object(m)) && collect(list, place, m, depth + 1, err))
            return err->code;
    return 0;
}

static int collect(struct asked_list *list, size_t place, const struct json *v, int depth, struct err *err)
{
    if (depth > DEPTH_MOST)
        return 0;
    if (json_is_object(v))
        return collect_object(list, place, v, depth, err);
    if (json_is_text(v))
        return take(list, place, json_text(v), err);
    for (const struct json *m = json_is_array(v) ? json_first(v) : NULL; m; m = json_next(m))
        if (collect(list, place, m, depth + 1, err))
            return err->code;
    return 0;
}

/* ---- JSON in prose ------------------------------------------------------ */

/* Length of the bracketed stretch at s, brackets in strings aside; 0 when it does not close. */
static size_t bracketed(const char *s)
{
    int depth = 0;
    bool quoted = false;

    for (size_t i = 0; s[i]; i++) {
        if (quoted) {
            quoted = s[i] != '"';
            i += s[i] == '\\' && s[i + 1];
        } else if (s[i] == '"') {
            quoted = true;
        } else if (s[i] == '{' || s[i] == '[') {
            depth++;
        } else if ((s[i] == '}' || s[i] == ']') && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* Every JSON value in brackets, one after the other, wherever it stands. */
static int collect_json(struct asked_list *list, size_t place, const char *s, struct err *err)
{
    struct err ignored;

    for (int starts = 0; starts < STARTS_MOST; starts++) {
        s += strcspn(s, "{[");
        if (!*s)
            return 0;
        size_t n = bracketed(s);
        struct json *v = n ? json_parse(s, n, &ignored) : NULL;
        int code = v ? collect(list, place, v, 0, err) : 0;
        json_free(v);
        if (code)
            return code;
        s += v ? n : 1;
    }
    return 0;
}

/* No JSON: every line that ends as a question does. */
static int collect_lines(struct asked_list *list, size_t place, const char *s, struct err *err)
{
    struct buf line = { 0 };
    int code = 0;

    for (; *s && !code; s += *s == '\n') {
        size_t n = strcspn(s, "\n");
        buf_clear(&line);
        text_flatten(&line, s, n);
        while (line.n && strchr("\"*,", line.at[line.n - 1]))
            line.at[--line.n] = '\0';
        bool asks = line.n && (line.at[line.n - 1] == '?' || (line.n >= 3 && !strcmp(line.at + line.n - 3, "\uff1f")));
        if (asks)
            code = take(list, place, line.at, err);
        s += n;
    }
    if (buf_failed(&line) && !code)
        code = err_nomem(err);
    buf_release(&line);
    return code;
}

int reply_questions(struct asked_list *list, size_t place, const char *content, struct err *err)
{
    static const char thought[] = "</think>"; /* reasoning models draft lists before the one they mean */
    int before = list->n;

    for (const char *end = strstr(content, thought); end; end = strstr(content, thought))
        content = end + strlen(thought);
    if (collect_json(list, place, content, err))
        return err->code;
    return list->n > before ? 0 : collect_lines(list, place, content, err);
}

/* ---- bodies ------------------------------------------------------------- */

/* "content" is a string, or a list of parts of which the texts count. */
static void add_content(struct buf *out, const struct json *content)
{
    if (json_is_text(content))
        buf_adds(out, json_text(content));
    for (const struct json *p = json_is_array(content) ? json_first(content) : NULL; p; p = json_next(p))
        if (json_is_text(json_get(p, "text")))
            buf_adds(out, json_text(json_get(p, "text")));
}

static int64_t count_of(const struct json *usage, const char *name)
{
    struct err ignored;
    int64_t n = 0;

    return usage && !json_may_int(usage, name, &n, &ignored) && n > 0 ? n : 0;
}

int reply_read(struct asked_list *list, size_t place, struct usage *usage, const char *body, size_t n,
               const char *secret, struct err *err)
{
    struct buf content = { 0 };
    int before = list->n;
    struct json *v = json_parse(body, n, err);

    if (!v)
        return err_wrap(err, "the reply is no JSON");
    const struct json *used = json_get(v, "usage");
    usage->prompt += count_of(used, "prompt_tokens");
    usage->completion += count_of(used, "completion_tokens");
    add_content(&content, json_get(json_get(json_at(json_get(v, "choices"), 0), "message"), "content"));
    json_free(v);
    int code = buf_failed(&content) ? err_nomem(err) : 0;
    if (!code && content.n == 0)
        code = err_set(err, ERR_FORMAT, "the reply has no message");
    if (!code) {
        hide(content.at, secret);
        code = reply_questions(list, place, content.at, err);
    }
    if (!code && list->n == before)
        code = err_set(err, ERR_FORMAT, "the reply holds no question");
    buf_release(&content);
    return code;
}

void reply_complaint(struct buf *out, const char *body, size_t n, const char *secret)
{
    struct err ignored;
    struct json *v = json_parse(body, n, &ignored);
    const struct json *error = json_get(v, "error");
    const char *said[] = { json_text(json_get(error, "message")), json_text(error), json_text(json_get(v, "message")),
                           json_text(json_get(v, "detail")) };
    struct buf flat = { 0 };

    for (size_t i = 0; i < sizeof(said) / sizeof(*said) && flat.n == 0; i++)
        if (said[i])
            text_flatten(&flat, said[i], strlen(said[i]));
    if (!buf_failed(&flat) && flat.n) {
        hide(flat.at, secret);
        utf8_clean(out, flat.at, flat.n < COMPLAINT_MOST ? flat.n : COMPLAINT_MOST);
    }
    buf_release(&flat);
    json_free(v);
}

bool reply_refuses_schema(int status, const char *body, size_t n)
{
    static const char *const word[] = { "response_format", "json_schema", "structured output", "guided" };

    for (size_t i = 0; i < sizeof(word) / sizeof(*word) && (status == 400 || status == 422); i++)
        if (memmem(body, n, word[i], strlen(word[i])))
            return true;
    return false;
}

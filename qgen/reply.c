/* reply.c - from the body of a reply down to its questions: the message in the body, JSON values in the message,
 * strings in the values; and lines that end in a question mark where there is no JSON. All of it is hostile: depth and
 * work are bounded, and the key that was sent is made unreadable before anything else looks at the text.
 */
#include "qgen/reply.h"

#include "base/json.h"
#include "base/utf8.h"
#include "qgen/prompt.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MAX_DEPTH = 4,       /* lists in objects in lists: no model nests deeper */
    MAX_STARTS = 64,     /* brackets tried as the start of JSON in a reply; bounds the work on hostile text */
    MAX_COMPLAINT = 200, /* bytes */
    MIN_SECRET = 8,      /* characters in a row that reveal a key; a shorter key ("EMPTY", "none") is not secret */
};

/* ---- secrets ------------------------------------------------------------ */

/* Length of the longest prefix of s that occurs somewhere in the secret. */
static size_t shared_length(const char *s, const char *secret)
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

/* Overwrites the secret: services repeat the key, or some of it, in their complaints. */
static void hide(char *s, const char *secret)
{
    while (secret && *s) {
        size_t n = shared_length(s, secret);
        if (n >= MIN_SECRET)
            memset(s, '*', n);
        s += n >= MIN_SECRET ? n : 1;
    }
}

/* ---- questions in JSON -------------------------------------------------- */

/* s after any "1. ", "2) ", "- ", "* ", "Q3: " and quotation marks in front of it. */
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

static int take_text(struct question_list *list, size_t position, const char *s, struct err *err)
{
    s = without_number(s);
    return question_list_add(list, s, strlen(s), position, err);
}

static int collect(struct question_list *list, size_t position, const struct json *v, int depth, struct err *err);

static int collect_object(struct question_list *list, size_t position, const struct json *v, int depth, struct err *err)
{
    static const char *const name[] = { "question", "text", "q" };

    if (json_is_array(json_get(v, "questions")))
        return collect(list, position, json_get(v, "questions"), depth + 1, err);
    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
        if (json_is_text(json_get(v, name[i])))
            return take_text(list, position, json_text(json_get(v, name[i])), err);
    for (const struct json *m = json_first(v); m; m = json_next(m))
        if ((json_is_array(m) || json_is_object(m)) && collect(list, position, m, depth + 1, err))
            return err->code;
    return 0;
}

static int collect(struct question_list *list, size_t position, const struct json *v, int depth, struct err *err)
{
    if (depth > MAX_DEPTH)
        return 0;
    if (json_is_object(v))
        return collect_object(list, position, v, depth, err);
    if (json_is_text(v))
        return take_text(list, position, json_text(v), err);
    for (const struct json *m = json_is_array(v) ? json_first(v) : NULL; m; m = json_next(m))
        if (collect(list, position, m, depth + 1, err))
            return err->code;
    return 0;
}

/* ---- JSON in prose ------------------------------------------------------ */

/* Length of the bracketed text at s, not counting brackets in strings; 0 when it does not close. */
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

/* Every JSON value in brackets, one after the other, whatever is between them. */
static int collect_json(struct question_list *list, size_t position, const char *s, struct err *err)
{
    struct err ignored;

    for (int starts = 0; starts < MAX_STARTS; starts++) {
        s += strcspn(s, "{[");
        if (!*s)
            return 0;
        size_t n = bracketed(s);
        struct json *v = n ? json_parse(s, n, &ignored) : NULL;
        int code = v ? collect(list, position, v, 0, err) : 0;
        json_free(v);
        if (code)
            return code;
        s += v ? n : 1;
    }
    return 0;
}

/* Every line that ends in a question mark. */
static int collect_lines(struct question_list *list, size_t position, const char *s, struct err *err)
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
            code = take_text(list, position, line.at, err);
        s += n;
    }
    if (buf_failed(&line) && !code)
        code = err_nomem(err);
    buf_release(&line);
    return code;
}

int reply_questions(struct question_list *list, size_t position, const char *content, struct err *err)
{
    static const char thought[] = "</think>"; /* reasoning models draft lists before the final one */
    int before = list->n;

    for (const char *end = strstr(content, thought); end; end = strstr(content, thought))
        content = end + strlen(thought);
    if (collect_json(list, position, content, err))
        return err->code;
    return list->n > before ? 0 : collect_lines(list, position, content, err);
}

/* ---- bodies ------------------------------------------------------------- */

/* "content" is a string, or a list of objects, some with a `text`. */
static void add_content(struct buf *out, const struct json *content)
{
    if (json_is_text(content))
        buf_adds(out, json_text(content));
    for (const struct json *p = json_is_array(content) ? json_first(content) : NULL; p; p = json_next(p))
        if (json_is_text(json_get(p, "text")))
            buf_adds(out, json_text(json_get(p, "text")));
}

/* Reasoning models may spend all their tokens before the message: OpenAI and Ollama say "reasoning", vLLM and llama.cpp
 * "reasoning_content". */
static int no_content(const struct json *choice, const struct json *message, struct err *err)
{
    const char *end = json_text(json_get(choice, "finish_reason")),
               *thought = json_text(json_get(message, "reasoning"));

    if (!thought)
        thought = json_text(json_get(message, "reasoning_content"));
    return err_set(err, ERR_FORMAT, "the reply has no message%s%s",
                   thought && *thought ? ", only reasoning: try --reasoning-effort" : "",
                   end && strcmp(end, "length") == 0 ? " (the service cut it: finish_reason is length)" : "");
}

void usage_add(struct usage *to, const struct usage *more)
{
    to->prompt += more->prompt;
    to->completion += more->completion;
}

int64_t usage_count(const struct json *usage, const char *name)
{
    struct err ignored;
    int64_t n = 0;

    return usage && !json_may_int(usage, name, &n, &ignored) && n > 0 && n <= INT32_MAX ? n : 0;
}

int reply_read(struct question_list *list, size_t position, struct usage *usage, const struct reply_body *body,
               struct err *err)
{
    struct buf content = { 0 };
    int before = list->n;
    struct json *v = json_parse(body->at, body->n, err);

    if (!v)
        return err_wrap(err, "the reply is not JSON");
    const struct json *used = json_get(v, "usage");
    usage->prompt += usage_count(used, "prompt_tokens");
    usage->completion += usage_count(used, "completion_tokens");
    const struct json *choice = json_at(json_get(v, "choices"), 0), *message = json_get(choice, "message");
    add_content(&content, json_get(message, "content"));
    int code = buf_failed(&content) ? err_nomem(err) : 0;
    if (!code && content.n == 0)
        code = no_content(choice, message, err);
    json_free(v);
    if (!code) {
        hide(content.at, body->secret);
        code = reply_questions(list, position, content.at, err);
    }
    if (!code && list->n == before)
        code = err_set(err, ERR_FORMAT, "the reply has no question in it");
    buf_release(&content);
    return code;
}

void reply_complaint(struct buf *out, const struct reply_body *body)
{
    struct err ignored;
    struct json *v = json_parse(body->at, body->n, &ignored);
    const struct json *error = json_get(v, "error");
    const char *said[] = { json_text(json_get(error, "message")), json_text(error), json_text(json_get(v, "message")),
                           json_text(json_get(v, "detail")) };
    struct buf flat = { 0 };

    for (size_t i = 0; i < sizeof(said) / sizeof(*said) && flat.n == 0; i++)
        if (said[i])
            text_flatten(&flat, said[i], strlen(said[i]));
    if (!buf_failed(&flat) && flat.n) {
        hide(flat.at, body->secret);
        utf8_clean(out, flat.at, flat.n < MAX_COMPLAINT ? flat.n : MAX_COMPLAINT);
    }
    buf_release(&flat);
    json_free(v);
}

/* Does the body contain one of the words, in upper or lower case? */
static bool has_word(const struct reply_body *body, const char *const *word)
{
    for (; *word; word++)
        for (size_t i = 0, n = strlen(*word); i + n <= body->n; i++)
            if (strncasecmp(body->at + i, *word, n) == 0)
                return true;
    return false;
}

unsigned reply_refuses(const struct reply_body *body, unsigned use)
{
    static const char *const format[] = {
        "response_format", "json_schema", "json_object", "structured output", "guided", "invalid format: expected", NULL
    };
    static const char *const max[] = { "max_completion_tokens", NULL };
    static const char *const role[] = { "messages[0].role",     "system role",     "role 'system'",
                                        "roles must alternate", "'messages', 0, ", NULL };

    if (use & PROMPT_MAX && has_word(body, max))
        return PROMPT_MAX;
    if (use & (PROMPT_SCHEMA | PROMPT_JSON) && has_word(body, format))
        return use & PROMPT_SCHEMA ? PROMPT_SCHEMA : PROMPT_JSON;
    return use & PROMPT_SYSTEM && has_word(body, role) ? PROMPT_SYSTEM : 0;
}

bool reply_blames_length(const struct reply_body *body)
{
    static const char *const word[] = {
        "context length", "context window",  "context size",    "context_length", "too long",
        "too large",      "too many tokens", "maximum context", "exceed",         NULL
    };

    return has_word(body, word);
}

/* prompt.c - the wording of the request, and the arithmetic of slices. */
#include "qgen/prompt.h"

#include "base/json.h"

#include <ctype.h>

enum {
    BYTES_PER_TOKEN = 4,
    PROMPT_TOKENS = 400,  /* more than the instructions and any chat template need */
    QUESTION_TOKENS = 60, /* of the reply: a long question with its JSON */
    MIN_SLICE = 256,      /* tokens of text, for any window */
    MAX_SLACK = 200,      /* bytes by which a slice may grow to be cut at white space */
};

static const char instructions[] =
    "You write questions that test whether a reader has a text at hand. Each question asks about one specific detail "
    "of the text (a name, a number, a definition, a condition, a reason, a sequence of events), can be answered from "
    "the text alone in a sentence or less, and cannot be answered without it. Name what you ask about: never write "
    "\"the passage above\" or \"this section\". Ask in the language of the text. Spread the questions evenly from its "
    "beginning to its end, and ask nothing twice.";

static void put_json(struct json_out *w)
{
    json_begin(w, "response_format", '{');
    json_put_text(w, "type", "json_object");
    json_end(w, '}');
}

static void put_schema(struct json_out *w)
{
    json_begin(w, "response_format", '{');
    json_put_text(w, "type", "json_schema");
    json_begin(w, "json_schema", '{');
    json_put_text(w, "name", "questions");
    json_put_bool(w, "strict", true);
    json_put_raw(
        w, "schema",
        "{\"type\":\"object\",\"properties\":{\"questions\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
        "\"required\":[\"questions\"],\"additionalProperties\":false}");
    json_end(w, '}');
    json_end(w, '}');
}

static void put_message(struct json_out *w, const char *role, const struct buf *content)
{
    json_begin(w, NULL, '{');
    json_put_text(w, "role", role);
    json_put_text_n(w, "content", buf_str(content), content->n);
    json_end(w, '}');
}

void prompt_request(struct buf *out, const struct prompt *p)
{
    struct json_out w = { .buf = out };
    struct buf system = { 0 }, user = { 0 };

    buf_adds(&system, instructions);
    if (!(p->use & PROMPT_SYSTEM))
        buf_printf(&user, "%s\n\n", instructions);
    buf_adds(&user, "<text>\n");
    buf_add(&user, p->text, p->n);
    buf_printf(&user,
               "\n</text>\n\nWrite exactly %d questions about the text. Reply with JSON only: "
               "{\"questions\": [\"...\", ...]}",
               p->questions);
    json_begin(&w, NULL, '{');
    json_put_text(&w, "model", p->model);
    json_begin(&w, "messages", '[');
    if (p->use & PROMPT_SYSTEM)
        put_message(&w, "system", &system);
    put_message(&w, "user", &user);
    json_end(&w, ']');
    if (p->use & PROMPT_SCHEMA)
        put_schema(&w);
    else if (p->use & PROMPT_JSON)
        put_json(&w);
    if (p->effort)
        json_put_text(&w, "reasoning_effort", p->effort);
    if (p->reply_tokens)
        json_put_int(&w, p->use & PROMPT_MAX ? "max_tokens" : "max_completion_tokens", p->reply_tokens);
    json_end(&w, '}');
    out->failed |= buf_failed(&system) || buf_failed(&user);
    buf_release(&system);
    buf_release(&user);
}

int prompt_slices(size_t n_text, int window, int questions)
{
    size_t taken = PROMPT_TOKENS + QUESTION_TOKENS * (size_t)questions;
    size_t tokens = (size_t)window > taken + MIN_SLICE ? (size_t)window - taken : MIN_SLICE;
    size_t max = tokens * BYTES_PER_TOKEN - MAX_SLACK;

    return (int)((n_text + max - 1) / max);
}

/* The last white space in the MAX_SLACK bytes before `at`, or else the start of the character at `at`. */
static size_t cut_before(const char *text, size_t n, size_t at)
{
    size_t min = at > MAX_SLACK ? at - MAX_SLACK : 0;

    if (at >= n)
        return n;
    for (size_t i = at; i > min; i--)
        if (isspace((unsigned char)text[i]))
            return i;
    while (at > min && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

struct text_slice prompt_slice(const char *text, size_t n, int i, int n_slices)
{
    size_t from = cut_before(text, n, n / (size_t)n_slices * (size_t)i);
    size_t to = i + 1 == n_slices ? n : cut_before(text, n, n / (size_t)n_slices * (size_t)(i + 1));

    return (struct text_slice){ .at = from, .n = to - from };
}

int prompt_share(int n, int i, int n_slices)
{
    return (int)((long long)n * (i + 1) / n_slices - (long long)n * i / n_slices);
}

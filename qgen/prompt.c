#include "qgen/prompt.h"

#include "base/json.h"

#include <ctype.h>

enum {
    BYTES_PER_TOKEN = 4,
    PROMPT_TOKENS = 400,  /* the instructions and the chat template, with room to spare */
    QUESTION_TOKENS = 60, /* of the reply: a long question with its JSON */
    PART_LEAST = 256,     /* tokens of text, however small the window */
    SLACK = 200,          /* bytes that a part may grow by where it is cut at white space */
};

static const char instructions[] =
    "You write questions that test whether a reader has a text at hand. Each question asks about one specific detail "
    "of the text (a name, a number, a definition, a condition, a reason, a sequence of events), can be answered from "
    "the text alone in a sentence or less, and cannot be answered without it. Name what you ask about: never write "
    "\"the passage above\" or \"this section\". Ask in the language of the text. Spread the questions evenly from its "
    "beginning to its end, and ask nothing twice.";

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

void prompt_request(struct buf *out, const char *model, const char *text, size_t n_text, int n, enum prompt_form form)
{
    struct json_out w = { .buf = out };
    struct buf system = { 0 }, user = { 0 };

    buf_adds(&system, instructions);
    buf_adds(&user, "<text>\n");
    buf_add(&user, text, n_text);
    buf_printf(&user,
               "\n</text>\n\nWrite exactly %d questions about the text. Reply with JSON only: "
               "{\"questions\": [\"...\", ...]}",
               n);
    json_begin(&w, NULL, '{');
    json_put_text(&w, "model", model);
    json_begin(&w, "messages", '[');
    put_message(&w, "system", &system);
    put_message(&w, "user", &user);
    json_end(&w, ']');
    if (form == PROMPT_SCHEMA)
        put_schema(&w);
    json_end(&w, '}');
    out->failed |= buf_failed(&system) || buf_failed(&user);
    buf_release(&system);
    buf_release(&user);
}

int prompt_parts(size_t n_text, int window, int questions)
{
    size_t taken = PROMPT_TOKENS + QUESTION_TOKENS * (size_t)questions;
    size_t tokens = (size_t)window > taken + PART_LEAST ? (size_t)window - taken : PART_LEAST;
    size_t room = tokens * BYTES_PER_TOKEN - SLACK;

    return (int)((n_text + room - 1) / room);
}

/* The last white space, or else the last start of a character, that is at most SLACK bytes before `at`. */
static size_t cut_before(const char *text, size_t n, size_t at)
{
    size_t least = at > SLACK ? at - SLACK : 0;

    if (at >= n)
        return n;
    for (size_t i = at; i > least; i--)
        if (isspace((unsigned char)text[i]))
            return i;
    while (at > least && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

struct text_part prompt_part(const char *text, size_t n, int p, int parts)
{
    size_t from = cut_before(text, n, n / (size_t)parts * (size_t)p);
    size_t to = p + 1 == parts ? n : cut_before(text, n, n / (size_t)parts * (size_t)(p + 1));

    return (struct text_part){ .at = from, .n = to - from };
}

int prompt_share(int n, int p, int parts)
{
    return (int)((long long)n * (p + 1) / parts - (long long)n * p / parts);
}

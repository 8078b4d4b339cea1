/* What evp-qgen makes of a service's replies: tolerant parsing, decisions about retries, parts of long texts. */
#include "base/buf.h"
#include "base/json.h"
#include "qgen/api.h"
#include "qgen/prompt.h"
#include "qgen/reply.h"

#include <criterion/criterion.h>
#include <string.h>

/* ---- what counts as a list of questions --------------------------------- */

static const struct {
    const char *content;
    const char *questions; // joined by '|'
} content_row[] = {
    { "{\"questions\": [\"Who?\", \"Why so?\"]}", "Who?|Why so?" },
    { "[\"Who?\", \"Why so?\"]", "Who?|Why so?" },
    { "```json\n{\"questions\": [\"Who?\"]}\n```", "Who?" },
    { "Sure, here {you} are:\n\n```\n[\"Who?\"]\n```\nAnything [else]?", "Who?" },
    { "<think>[\"A draft?\"]</think>[\"Who?\"]", "Who?" },
    { "[{\"question\": \"Who?\", \"answer\": \"Nobody at all?\"}, {\"q\": \"Why so?\"}]", "Who?|Why so?" },
    { "{\"question\":\"Who?\"}\n{\"question\":\"Why so?\"}\n", "Who?|Why so?" },
    { "{\"data\": {\"questions\": [{\"text\": \"Who?\"}], \"notes\": [\"none\"]}}", "Who?" },
    { "{\"questions\": [\"Who?\", \"who\", \"\", \"  \", 7, null, true, \"Who  ?\", \"Why so?\"]}", "Who?|Why so?" },
    { "{\"questions\": [\"What is \\\"x]\\\" for?\"]}", "What is \"x]\" for?" },
    { "{\"questions\": [\"1. Who?\", \"Q2: Why so?\", \"3.5 is what?\"]}", "Who?|Why so?|3.5 is what?" },
    { "1. Who?\n2) Why so?\n- When then?\nThat is all.", "Who?|Why so?|When then?" },
    { "\u8c01\u5728\u90a3\u91cc\uff1f\n", "\u8c01\u5728\u90a3\u91cc\uff1f" },
    { "{\"questions\": [\"Who?\", \"Why", "" },
    { "{\"questions\": []}", "" },
    { "[[[[[[[[\"Too deep?\"]]]]]]]]", "" },
    { "I cannot do that.", "" },
    { "", "" },
};

static void join(struct buf *out, const struct question_list *list)
{
    for (int i = 0; i < list->n; i++)
        buf_printf(out, "%s%s", i ? "|" : "", list->at[i].text);
}

Test(qgen, replies_are_read_however_they_are_wrapped)
{
    for (size_t i = 0; i < sizeof(content_row) / sizeof(*content_row); i++) {
        struct question_list list = { 0 };
        struct buf got = { 0 };
        struct err err;
        cr_assert_eq(reply_questions(&list, 0, content_row[i].content, &err), 0);
        join(&got, &list);
        cr_assert_str_eq(buf_str(&got), content_row[i].questions, "'%s' gives '%s'", content_row[i].content,
                         buf_str(&got));
        buf_release(&got);
        question_list_release(&list);
    }
}

Test(qgen, hostile_brackets_cost_little)
{
    struct question_list list = { 0 };
    struct buf text = { 0 };
    struct err err;

    for (int i = 0; i < 1 << 20; i++)
        buf_addc(&text, i % 2 ? '{' : '[');
    cr_assert(!reply_questions(&list, 0, text.at, &err) && list.n == 0);
    buf_release(&text);
    question_list_release(&list);
}

/* ---- bodies ------------------------------------------------------------- */

static int read_body(const char *body, struct buf *got, struct usage *usage, struct err *err)
{
    struct question_list list = { 0 };
    int code = reply_read(&list, 0, usage, &(struct reply_body){ body, strlen(body), "sk-0123456789" }, err);

    join(got, &list);
    question_list_release(&list);
    return code;
}

Test(qgen, a_body_gives_questions_and_usage)
{
    struct usage usage = { 0 };
    struct buf got = { 0 };
    struct err err;

    cr_assert_eq(read_body("{\"choices\":[{\"message\":{\"content\":\"[\\\"Who has sk-0123456789?\\\"]\"}}],"
                           "\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3}}",
                           &got, &usage, &err),
                 0);
    cr_assert_str_eq(buf_str(&got), "Who has *************?");
    cr_assert(usage.prompt == 12 && usage.completion == 3);
    buf_clear(&got);
    cr_assert_eq(
        read_body("{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"[\\\"Who?\\\"]\"}]}}],"
                  "\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":\"x\"}}",
                  &got, &usage, &err),
        0);
    cr_assert_str_eq(buf_str(&got), "Who?");
    cr_assert(usage.prompt == 12 && usage.completion == 3);
    buf_release(&got);
}

Test(qgen, other_bodies_are_refused_with_a_sentence)
{
    static const struct {
        const char *body, *why;
    } row[] = {
        { "<html>", "the reply is not JSON: malformed JSON at byte 0" },
        { "{\"choices\":[{\"mess", "the reply is not JSON: malformed JSON at byte 14" },
        { "", "the reply is not JSON: empty where JSON is expected" },
        { "{}", "the reply has no message" },
        { "{\"choices\":[]}", "the reply has no message" },
        { "{\"choices\":[{\"message\":{\"content\":null}}]}", "the reply has no message" },
        { "{\"choices\":[{\"message\":{\"content\":null,\"reasoning_content\":\"Hm\"},\"finish_reason\":\"length\"}]}",
          "the reply has no message, only reasoning: try --reasoning-effort (the service cut it: finish_reason is "
          "length)" },
        { "{\"choices\":[{\"message\":{\"content\":\"\",\"reasoning\":\"Hm\"},\"finish_reason\":\"stop\"}]}",
          "the reply has no message, only reasoning: try --reasoning-effort" },
        { "{\"choices\":[{\"message\":{\"content\":\"No.\"}}]}", "the reply has no question in it" },
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct usage usage = { 0 };
        struct buf got = { 0 };
        struct err err;
        cr_assert_eq(read_body(row[i].body, &got, &usage, &err), ERR_FORMAT);
        cr_assert_str_eq(err.msg, row[i].why);
        buf_release(&got);
    }
}

Test(qgen, complaints_are_one_line_without_the_key)
{
    static const struct {
        const char *body, *said;
    } row[] = {
        { "{\"error\":{\"message\":\"bad key sk-0123456789,\\n really\"}}", "bad key *************, really" },
        { "{\"error\":{\"message\":\"bad key sk-01234**\"}}", "bad key **********" },
        { "{\"error\":\"overloaded\"}", "overloaded" },
        { "{\"detail\":\"too\\n\\tlong\"}", "too long" },
        { "{\"message\":7}", "" },
        { "<html>", "" },
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct buf said = { 0 };
        reply_complaint(&said, &(struct reply_body){ row[i].body, strlen(row[i].body), "sk-0123456789" });
        cr_assert_str_eq(buf_str(&said), row[i].said);
        buf_release(&said);
    }
}

/* ---- retries ------------------------------------------------------------ */

Test(qgen, what_is_tried_again)
{
    static const struct {
        enum http_outcome outcome;
        int status;
        const char *body;
        enum api_verdict verdict;
    } row[] = {
        { HTTP_REPLIED, 200, "", API_TAKE },
        { HTTP_REPLIED, 408, "", API_AGAIN },
        { HTTP_REPLIED, 429, "", API_AGAIN },
        { HTTP_REPLIED, 500, "", API_AGAIN },
        { HTTP_REPLIED, 502, "", API_AGAIN },
        { HTTP_REPLIED, 529, "", API_AGAIN },
        { HTTP_TIMED_OUT, 0, "", API_AGAIN },
        { HTTP_UNREACHABLE, 0, "", API_AGAIN },
        { HTTP_UNUSABLE, 0, "", API_STOP },
        { HTTP_TOO_LARGE, 0, "", API_FAIL },
        { HTTP_REPLIED, 401, "", API_STOP },
        { HTTP_REPLIED, 403, "", API_STOP },
        { HTTP_REPLIED, 400, "", API_FAIL },
        { HTTP_REPLIED, 404, "", API_FAIL },
        { HTTP_REPLIED, 302, "", API_FAIL },
        { HTTP_REPLIED, 400, "bad 'response_format'", API_LESS },
        { HTTP_REPLIED, 422, "json_schema: unknown", API_LESS },
        { HTTP_REPLIED, 500, "json_schema: unknown", API_LESS },
        { HTTP_REPLIED, 400, "System role not supported", API_LESS },
        { HTTP_REPLIED, 400, "reasoning_effort: unknown", API_FAIL },
        { HTTP_REPLIED, 400, "Use 'max_completion_tokens' instead.", API_LESS },
        { HTTP_REPLIED, 404, "response_format", API_FAIL },
        { HTTP_REPLIED, 429, "response_format", API_AGAIN },
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct http_reply r = { .outcome = row[i].outcome, .status = row[i].status };
        buf_adds(&r.body, row[i].body);
        cr_assert_eq(api_judge(&r, PROMPT_SCHEMA | PROMPT_SYSTEM | PROMPT_MAX), row[i].verdict, "row %zu: '%s'", i,
                     row[i].body);
        http_reply_release(&r);
    }
}

Test(qgen, waits_grow_and_stay_bounded)
{
    struct rng rng = rng_new(1), same = rng_new(1);
    double longest = 0;

    for (int i = 0; i < 200; i++) {
        cr_assert_leq(api_delay(0, 0, &rng), 0.5);
        cr_assert_leq(api_delay(2, 0, &rng), 2);
        double late = api_delay(90, 0, &rng);
        longest = late > longest ? late : longest;
    }
    cr_assert(longest > 20 && longest <= 30);
    cr_assert_eq(api_delay(0, 7, &rng), 7);
    cr_assert_eq(api_delay(0, 1e9, &rng), 120);
    cr_assert_leq(api_delay(0, 0, &same), 0.5);
}

/* ---- requests ----------------------------------------------------------- */

Test(qgen, a_request_is_json_with_the_text_in_it)
{
    for (unsigned use = 0; use < 16; use++) {
        struct buf body = { 0 };
        struct err err;
        prompt_request(&body, &(struct prompt){ "m\"x", "a \"text\"\n", 9, 3, use, use & 1 ? "low" : NULL, 77 });
        struct json *v = json_parse(buf_str(&body), body.n, &err);
        cr_assert(v, "%s", err.msg);
        cr_assert_str_eq(json_text(json_get(v, "model")), "m\"x");
        const struct json *messages = json_get(v, "messages");
        cr_assert_eq(json_count(messages), use & PROMPT_SYSTEM ? 2 : 1);
        const char *first = json_text(json_get(json_at(messages, 0), "content"));
        cr_assert(strstr(first, "You write questions that test"));
        const char *user = json_text(json_get(json_at(messages, json_count(messages) - 1), "content"));
        cr_assert(strstr(user, "a \"text\"\n") && strstr(user, "exactly 3 questions"));
        const struct json *schema = json_get(json_get(json_get(v, "response_format"), "json_schema"), "schema");
        cr_assert_eq(json_is_object(schema), (use & PROMPT_SCHEMA) != 0);
        const char *format = json_text(json_get(json_get(v, "response_format"), "type"));
        cr_assert_eq(format != NULL, (use & (PROMPT_SCHEMA | PROMPT_JSON)) != 0);
        if (format)
            cr_assert_str_eq(format, use & PROMPT_SCHEMA ? "json_schema" : "json_object");
        cr_assert_eq(json_get(v, "reasoning_effort") != NULL, (use & 1) != 0);
        cr_assert_eq(json_real(json_get(v, use & PROMPT_MAX ? "max_tokens" : "max_completion_tokens")), 77);
        cr_assert(!json_get(v, use & PROMPT_MAX ? "max_completion_tokens" : "max_tokens"));
        json_free(v);
        buf_release(&body);
    }
}

Test(qgen, parts_cover_a_text_and_share_the_questions_out)
{
    struct buf text = { 0 };

    for (int i = 0; i < 5000; i++)
        buf_printf(&text, i % 3 ? "\u4e00\u4e8c" : "word%d ", i);
    for (int window = 512; window < 40000; window = window * 3 / 2) {
        int parts = prompt_slices(text.n, window, 8), questions = 0;
        size_t next = 0;
        for (int p = 0; p < parts; p++) {
            struct text_slice part = prompt_slice(text.at, text.n, p, parts);
            cr_assert(part.at == next && part.n > 0);
            cr_assert_neq((unsigned char)text.at[part.at] & 0xc0, 0x80);
            cr_assert_leq(part.n, 4 * (size_t)window);
            next += part.n;
            questions += prompt_share(8, p, parts);
        }
        cr_assert_eq(next, text.n);
        cr_assert_eq(questions, 8);
    }
    cr_assert_eq(prompt_slices(100, 512, 8), 1);
    buf_release(&text);
}

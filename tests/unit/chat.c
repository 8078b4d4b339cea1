/* Chat templates: the halves of each family around a message are what Jinja makes of its template
 * (tests/golden/chat/rendered.json, made by the script beside it); templates and files that are refused. */
#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/tokens/chat.h"
#include "engine/tokens/tokenizer_internal.h"
#include "formats/context.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The ids of a message as context and question are those of the text that Jinja made, whose special tokens are parsed.
 * The message is cut in two at each character. */
static void check_message(struct tokenizer *t, const char *message, const char *rendered, const char *name)
{
    struct err err;
    struct tokens want = { 0 };

    cr_assert_eq(tokenizer_encode(t, text_view_of(rendered), SPECIAL_PARSED, &want, &err), 0);
    for (size_t cut = 0; cut <= strlen(message); cut++) {
        struct prompt_ids context, asked;
        struct tokens got = { 0 };
        char *before = strndup(message, cut);
        if (((unsigned char)message[cut] & 0xc0) != 0x80) {
            cr_assert_eq(tokenizer_context(t, before, &context, &err), 0, "%s", err.msg);
            cr_assert_eq(tokenizer_ask(&context, "{question}", &asked, &err), 0);
            for (int i = 0; i < context.ids.n; i++)
                cr_assert_eq(tokens_add(&got, context.ids.at[i], &err), 0);
            cr_assert_eq(tokenizer_question(&asked, message + cut, &got, &err), 0);
            cr_assert(got.n == want.n && memcmp(got.at, want.at, (size_t)got.n * sizeof(*got.at)) == 0,
                      "%s: '%s' cut after %zu bytes: %d ids, not %d", name, message, cut, got.n, want.n);
            prompt_ids_release(&asked);
            prompt_ids_release(&context);
        }
        tokens_release(&got);
        free(before);
    }
    tokens_release(&want);
}

/* A conversation as a context: its last message is cut at `cut`. */
static void conversation_of(struct context *c, const struct json *messages, size_t cut)
{
    struct buf text = { 0 };

    *c = (struct context){ .n_tokens = -1 };
    for (const struct json *m = json_first(messages); m; m = json_next(m)) {
        const char *content = json_text(json_get(m, "content"));
        size_t n = json_next(m) ? strlen(content) : cut;
        int role = turn_role_find(json_text(json_get(m, "role")));
        cr_assert_eq(ARRAY_PUSH(&c->turns, ((struct turn){ (enum turn_role)role, n })), 0);
        buf_add(&text, content, n);
    }
    c->text = buf_take(&text);
}

/* 1: the ids of a conversation are those of the text that Jinja made, wherever its last message is cut. 0: refused. */
static int check_conversation(struct tokenizer *t, const struct json *one, const char *name)
{
    const char *rendered = json_text(json_get(one, "rendered")), *last = NULL;
    struct tokens want = { 0 };
    struct err err;

    for (const struct json *m = json_first(json_get(one, "messages")); m; m = json_next(m))
        last = json_text(json_get(m, "content"));
    /* <|im_end|> in a message is text and not a special token, so the marks are encoded apart from it */
    bool plain = !strstr(last, "<|im_end|>");
    if (rendered && plain)
        cr_assert_eq(tokenizer_encode(t, text_view_of(rendered), SPECIAL_PARSED, &want, &err), 0);
    for (size_t cut = 0; cut <= strlen(last); cut++) {
        struct prompt_ids context, asked;
        struct tokens got = { 0 };
        struct context c;
        conversation_of(&c, json_get(one, "messages"), cut);
        int code = tokenizer_context_row(t, &c, &context, &err);
        context_release(&c);
        if (code) {
            cr_assert_eq(code, ERR_FORMAT);
            tokens_release(&want);
            return 0;
        }
        cr_assert_not_null(rendered, "%s: Jinja refuses the conversation", name);
        cr_assert_eq(tokenizer_ask(&context, "{question}", &asked, &err), 0);
        for (int i = 0; i < context.ids.n; i++)
            cr_assert_eq(tokens_add(&got, context.ids.at[i], &err), 0);
        cr_assert_eq(tokenizer_question(&asked, last + cut, &got, &err), 0);
        if (plain) {
            cr_assert(got.n == want.n && memcmp(got.at, want.at, (size_t)got.n * sizeof(*got.at)) == 0,
                      "%s: '%s' cut after %zu bytes: %d ids, not %d", name, last, cut, got.n, want.n);
        } else if (want.n == 0) {
            want = got;
            got = (struct tokens){ 0 };
        } else {
            cr_assert(got.n == want.n && memcmp(got.at, want.at, (size_t)got.n * sizeof(*got.at)) == 0, "%s", name);
        }
        prompt_ids_release(&asked);
        prompt_ids_release(&context);
        tokens_release(&got);
    }
    tokens_release(&want);
    return 1;
}

static int n_conversations;

static const char *const specials[] = { "<|im_start|>",      "<|im_end|>", "<|eot_id|>", "<|start_header_id|>",
                                        "<|end_header_id|>", "<|end|>",    "<|user|>",   "<end_of_turn>" };
enum { N_SPECIALS = sizeof(specials) / sizeof(*specials) };

static void check_known(struct tokenizer *t, const struct json *one, const char *name)
{
    const char *bos = json_text(json_get(one, "bos")), *jinja = json_text(json_get(one, "template"));
    const char *date = json_text(json_get(one, "date"));
    const struct json *message = json_first(json_get(one, "messages"));
    struct err err;

    cr_assert_eq(chat_find(&t->chat, text_view_of(jinja), bos, &err), 0, "%s: %s", name, err.msg);
    cr_assert_eq(t->chat.today, strstr(jinja, "strftime_now") != NULL);
    if (date)
        cr_assert_eq(chat_set_date(&t->chat, date, &err), 0, "%s: %s", name, err.msg);
    else if (!strstr(name, "Llama 3.1"))
        cr_assert_eq(chat_set_date(&t->chat, "now", &err), ERR_FORMAT, "%s", name);
    for (const struct json *r = json_first(json_get(one, "rendered")); r;
         r = json_next(r), message = json_next(message)) {
        const char *text = json_text(r);
        size_t head = strlen(t->chat.head), tail = strlen(t->chat.tail), n = strlen(text);
        cr_assert(n >= head + tail && memcmp(text, t->chat.head, head) == 0, "%s: '%s'", name, t->chat.head);
        cr_assert_str_eq(text + n - tail, t->chat.tail, "%s", name);
        check_message(t, json_text(message), text, name);
    }
    for (const struct json *c = json_first(json_get(one, "conversations")); c; c = json_next(c))
        n_conversations += check_conversation(t, c, name);
    chat_release(&t->chat);
    if (date) { // the first token of a model may be anything
        static const char odd[] = "Today Date: none";
        cr_assert_eq(chat_find(&t->chat, text_view_of(jinja), odd, &err), 0);
        cr_assert_eq(chat_set_date(&t->chat, "", &err), 0);
        cr_assert_eq(memcmp(t->chat.head, odd, sizeof(odd) - 1), 0, "'%s'", t->chat.head);
        cr_assert(strstr(t->chat.system.open, "Today Date: \n\n"));
        cr_assert_eq(chat_set_date(&t->chat, "\xff", &err), ERR_FORMAT);
        chat_release(&t->chat);
    }
}

Test(chat, halves_are_what_jinja_renders)
{
    struct buf text = { 0 };
    struct err err;
    struct tokenizer t = { 0 };
    int n_known = 0, n_unknown = 0;

    cr_assert_eq(file_read(&text, "tests/golden/chat/rendered.json", 1 << 20, &err), 0, "%s", err.msg);
    struct json *root = json_parse(buf_str(&text), text.n, &err);
    cr_assert_not_null(root);
    cr_assert_eq(tokenizer_of_bytes(&t, 300, &err), 0);
    for (int i = 0; i < N_SPECIALS; i++)
        cr_assert_eq(tokenizer_add_token(&t, text_view_of(specials[i]), 290 + i, ADDED_SPECIAL, &err), 0);
    chat_release(&t.chat);
    for (const struct json *one = json_first(root); one; one = json_next(one)) {
        const char *name = json_text(json_get(one, "name"));
        struct text_view jinja = text_view_of(json_text(json_get(one, "template")));
        if (json_get(one, "rendered")) {
            check_known(&t, one, name);
            n_known++;
        } else {
            cr_assert_eq(chat_find(&t.chat, jinja, "B", &err), ERR_FORMAT, "%s", name);
            cr_assert_str_eq(err.msg, "its chat template is not of a known family");
            n_unknown++;
        }
    }
    cr_assert(n_known == 22 && n_unknown == 5);
    cr_assert_eq(n_conversations, 34);
    tokenizer_release(&t);
    json_free(root);
    buf_release(&text);
}

Test(chat, a_system_turn_that_is_code_is_not_guessed_at)
{
    static const char odd[] = "'<|im_start|>system\\nUse \\\\boxed{}.<|im_end|>\\n'";
    struct chat c;
    struct err err;

    cr_assert_eq(chat_find(&c, text_view_of(odd), "B", &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "is not plain text"), "%s", err.msg);
    cr_assert_null(c.head);
}

Test(chat, files_have_two_parts)
{
    static const struct {
        const char *text;
        size_t n;
        const char *head, *tail, *error;
    } cases[] = {
        { "a {content} b\n", 14, "a ", " b\n", NULL },
        { "{content}", 9, "", "", NULL },
        { "{content", 8, NULL, NULL, "this one does not" },
        { "", 0, NULL, NULL, "this one does not" },
        { "{content}{content}", 18, NULL, NULL, "contains it again" },
        { "a\0{content}", 11, NULL, NULL, "not UTF-8" },
        { "\xff{content}", 10, NULL, NULL, "not UTF-8" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct chat c;
        struct err err;
        int code = chat_parse(&c, (struct text_view){ cases[i].text, cases[i].n }, &err);
        cr_assert_eq(code, cases[i].error ? ERR_FORMAT : 0);
        if (cases[i].error) {
            cr_assert(strstr(err.msg, cases[i].error), "%s", err.msg);
        } else {
            cr_assert_str_eq(c.head, cases[i].head);
            cr_assert_str_eq(c.tail, cases[i].tail);
        }
        chat_release(&c);
    }
}

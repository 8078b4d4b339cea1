/* Rows of contexts and questions: what is taken, what is refused, and that both come back as they went. */
#include "base/file.h"
#include "formats/context.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int context_of(struct context *c, const char *json, struct err *e)
{
    struct json *row = json_parse(json, strlen(json), e);

    cr_assert(row, "%s", json);
    int code = context_from_json(c, row, e);
    json_free(row);
    return code;
}

static int question_of(struct question *q, const char *json, struct err *e)
{
    struct json *row = json_parse(json, strlen(json), e);

    cr_assert(row, "%s", json);
    int code = question_from_json(q, row, e);
    json_free(row);
    return code;
}

static void writes_as(const struct context *c, const char *json)
{
    struct buf b = { 0 };
    struct json_out w = { .buf = &b };

    json_begin(&w, NULL, '{');
    context_to_json(c, &w);
    json_end(&w, '}');
    cr_assert_str_eq(b.at, json);
    buf_release(&b);
}

Test(context, comes_back_as_it_went)
{
    static const char json[] =
        "{\"id\":\"a/1\",\"dataset\":\"a\",\"text\":\"na\xc3\xafve\\n\",\"ask\":\"? {question}\","
        "\"inputs\":[{\"question\":\"q\",\"answers\":[\"x\",\"y\"]},{\"question\":\"r\","
        "\"answers\":[]}],\"chars\":6,\"n_tokens\":3}";
    struct context c;
    struct err e;

    cr_assert(!context_of(&c, json, &e), "%s", e.msg);
    writes_as(&c, json);
    context_release(&c);
}

Test(context, what_is_absent_has_its_default)
{
    struct context c;
    struct err e;

    cr_assert(!context_of(&c, "{\"id\":\"a\",\"text\":\"t\",\"inputs\":[{\"question\":\"q\"}],\"chars\":99}", &e));
    cr_assert_str_eq(c.ask, CONTEXT_PLAIN_ASK);
    cr_assert_str_eq(c.dataset, "");
    cr_assert_eq(c.n_tokens, -1);
    cr_assert_eq(c.chars, 1, "counted, not believed");
    cr_assert_eq(c.inputs.at[0].n_answers, 0);
    context_release(&c);
}

Test(context, refuses)
{
    static const char *const bad[][2] = {
        { "{\"text\":\"t\"}", "field 'id' is missing" },
        { "{\"id\":\"\",\"text\":\"t\"}", "field 'id' is empty" },
        { "{\"id\":\"a\",\"text\":\"\"}", "field 'text' is empty" },
        { "{\"id\":\"a\",\"text\":[]}", "field 'text' is not a string" },
        { "{\"id\":\"a\",\"text\":\"t\",\"ask\":1}", "field 'ask' is not a string" },
        { "{\"id\":\"a\",\"text\":\"t\",\"n_tokens\":1.5}", "field 'n_tokens' is not a whole number" },
        { "{\"id\":\"a\",\"text\":\"t\",\"inputs\":{}}", "field 'inputs' is not a list" },
        { "{\"id\":\"a\",\"text\":\"t\",\"inputs\":[3]}", "field 'inputs': field 'question' is missing" },
        { "{\"id\":\"a\",\"text\":\"t\",\"inputs\":[{\"question\":\"q\",\"answers\":[[]]}]}",
          "field 'inputs': field 'answers' holds something that is neither a string nor a number" },
    };
    struct context c;
    struct err e;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_eq(context_of(&c, bad[i][0], &e), ERR_FORMAT, "%s", bad[i][0]);
        cr_assert_str_eq(e.msg, bad[i][1]);
        cr_assert(!c.id && !c.inputs.at, "a failed row leaves nothing");
    }
}

Test(context, unites_the_questions_of_two)
{
    struct context a, b;
    struct err e;

    cr_assert(!context_of(&a, "{\"id\":\"a\",\"text\":\"t\",\"inputs\":[{\"question\":\"1\"}]}", &e));
    cr_assert(!context_of(&b,
                          "{\"id\":\"b\",\"text\":\"t\",\"inputs\":[{\"question\":\"2\",\"answers\":[\"x\"]},"
                          "{\"question\":\"1\"},{\"question\":\"3\"}]}",
                          &e));
    cr_assert(!context_unite(&a, &b, &e));
    context_release(&b);
    cr_assert_eq(a.inputs.n, 3);
    cr_assert_str_eq(a.inputs.at[1].question, "2");
    cr_assert_str_eq(a.inputs.at[1].answer[0], "x");
    cr_assert_str_eq(a.inputs.at[2].question, "3");
    context_release(&a);
}

Test(question, comes_back_as_it_went)
{
    static const char json[] =
        "{\"id\":\"a/1#0\",\"context\":\"a/1\",\"split\":\"test\",\"text\":\"why?\",\"origin\":\"offline\"}";
    struct buf b = { 0 };
    struct json_out w = { .buf = &b };
    struct question q;
    struct err e;

    cr_assert(!question_of(&q, json, &e), "%s", e.msg);
    cr_assert_eq(q.split, SPLIT_TEST);
    json_begin(&w, NULL, '{');
    question_to_json(&q, &w);
    json_end(&w, '}');
    cr_assert_str_eq(b.at, json);
    question_release(&q);
    buf_release(&b);
}

Test(question, refuses)
{
    static const char *const bad[][2] = {
        { "{\"context\":\"a\",\"text\":\"t\",\"split\":\"test\"}", "field 'id' is missing" },
        { "{\"id\":\"q\",\"text\":\"t\",\"split\":\"test\"}", "field 'context' is missing" },
        { "{\"id\":\"q\",\"context\":\"a\",\"text\":\"t\"}", "field 'split' is missing" },
        { "{\"id\":\"q\",\"context\":\"a\",\"text\":\"t\",\"split\":\"dev\"}",
          "field 'split' is 'dev', not 'train' or 'test'" },
        { "{\"id\":\"q\",\"context\":\"a\",\"text\":\"t\",\"split\":\"test\",\"asked_at\":-1}",
          "field 'asked_at' is -1, not a number of seconds since 1970" },
        { "{\"id\":\"q\",\"context\":\"a\",\"text\":\"t\",\"split\":\"test\",\"asked_at\":1.7e12}",
          "field 'asked_at' is 1.7e+12, not a number of seconds since 1970" },
        { "{\"id\":\"q\",\"context\":\"a\",\"text\":\"\",\"split\":\"test\"}", "field 'text' is empty" },
    };
    struct question q;
    struct err e;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_eq(question_of(&q, bad[i][0], &e), ERR_FORMAT, "%s", bad[i][0]);
        cr_assert_str_eq(e.msg, bad[i][1]);
    }
}

/* ---- streams -------------------------------------------------------------- */

static char path[] = "/tmp/evp-context-XXXXXX";

static void store(const char *text)
{
    struct err e;

    close(mkstemp(path));
    cr_assert(!file_write(path, text, strlen(text), &e));
}

Test(context, streams_are_numbered_by_id)
{
    struct contexts list;
    struct err e;

    store("{\"id\":\"a\",\"text\":\"1\"}\n\n{\"id\":\"b\",\"text\":\"2\"}\n{\"id\":\"c\",\"text\":\"3\"}\n");
    cr_assert(!contexts_read(&list, path, &e), "%s", e.msg);
    cr_assert_eq(list.n, 3);
    cr_assert_eq(map_find(&list.ids, "c", 1), 2);
    cr_assert_str_eq(list.at[2].text, "3");
    contexts_release(&list);
    unlink(path);
}

Test(context, streams_with_a_wrong_row_are_refused_with_its_line)
{
    static const char *const bad[][2] = {
        { "{\"id\":\"a\",\"text\":\"1\"}\n{\"id\":\"a\",\"text\":\"2\"}\n", "line 2: id 'a' comes twice" },
        { "{\"id\":\"a\",\"text\":\"1\"}\n{\"id\":\"b\"}\n", "line 2: field 'text' is missing" },
        { "{\"id\":\"a\",\"text\":\"1\"}\n{\"id\":\"b\",", "line 2: malformed JSON" },
        { "{\"id\":\"a\",\"text\":\"1\"}\n[]\n", "line 2: not a JSON object" },
        { "", "is empty" },
        { "{\"evp\":\"contexts\",\"version\":1}\n{\"end\":true,\"rows\":0}\n", "holds no contexts" },
        { "{\"evp\":\"contexts\",\"version\":2}\n", "is of version 2; this program reads version 1" },
        { "{\"evp\":\"questions\",\"version\":1}\n", "holds questions, not contexts" },
        { "{\"evp\":\"contexts\",\"version\":1}\n{\"id\":\"a\",\"text\":\"1\"}\n{\"end\":true,\"rows\":2}\n",
          "has 1 rows, but its end line says 2" },
        { "{\"evp\":\"contexts\",\"version\":1}\n{\"id\":\"a\",\"text\":\"1\"}\n{\"end\":true,\"rows\":1}\n{}\n",
          "a row after the end line" },
    };
    struct contexts list;
    struct err e;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
        store(bad[i][0]);
        cr_assert_eq(contexts_read(&list, path, &e), ERR_FORMAT, "%s", bad[i][0]);
        cr_assert(strstr(e.msg, bad[i][1]), "%s", e.msg);
        unlink(path);
    }
}

Test(question, streams_are_read)
{
    struct questions list;
    struct err e;

    store("{\"id\":\"q\",\"context\":\"a\",\"split\":\"train\",\"text\":\"t\"}\n");
    cr_assert(!questions_read(&list, path, &e), "%s", e.msg);
    cr_assert_eq(list.n, 1);
    cr_assert_eq(list.at[0].split, SPLIT_TRAIN);
    questions_release(&list);
    unlink(path);
}

Test(context, turns_come_back_as_they_went)
{
    static const char json[] = "{\"id\":\"a\",\"dataset\":\"\",\"text\":\"na\xc3\xafve?\",\"ask\":\"{question}\","
                               "\"turns\":[{\"role\":\"system\",\"chars\":3},{\"role\":\"user\",\"chars\":3},"
                               "{\"role\":\"assistant\",\"chars\":0}],\"inputs\":[],\"chars\":6}";
    struct context c;
    struct err e;

    cr_assert(!context_of(&c, json, &e), "%s", e.msg);
    cr_assert_eq(c.turns.at[0].n, 4, "bytes");
    writes_as(&c, json);
    context_release(&c);
}

Test(context, turns_that_are_refused)
{
    static const char *const cases[][2] = {
        { "[{\"role\":\"user\",\"chars\":2}]", "does not reach the end" },
        { "[{\"role\":\"user\",\"chars\":4}]", "counts more characters than the text has" },
        { "[{\"role\":\"user\",\"chars\":-1}]", "counts more characters than the text has" },
        { "[{\"role\":\"tool\",\"chars\":3}]", "role 'tool'" },
        { "[{\"role\":\"user\",\"chars\":3},{\"role\":\"system\",\"chars\":0}]", "has role 'system' after others" },
        { "[{\"role\":\"prompt\",\"chars\":3},{\"role\":\"user\",\"chars\":0}]", "has role 'prompt' beside others" },
        { "7", "is not a list" },
        { "[7]", "field 'turns'" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char json[256];
        struct context c;
        struct err e;
        snprintf(json, sizeof(json), "{\"id\":\"a\",\"text\":\"abc\",\"turns\":%s}", cases[i][0]);
        cr_assert_eq(context_of(&c, json, &e), ERR_FORMAT, "%s", json);
        cr_assert(strstr(e.msg, cases[i][1]), "%s: %s", json, e.msg);
    }
}

/* ---- ids of questions ------------------------------------------------------ */

Test(context, an_id_belongs_to_context_and_text)
{
    char *a = question_new_id("c", "Who?"), *same = question_new_id("c", "Who?"), *other = question_new_id("c", "How?");
    char *elsewhere = question_new_id("d", "Who?");

    cr_assert_str_eq(a, same);
    cr_assert_str_neq(a, other);
    cr_assert_str_neq(a + 2, elsewhere + 2);
    cr_assert_eq(strlen(a), strlen("c/") + 12);
    cr_assert_eq(strncmp(a, "c/", 2), 0);
    free(a), free(same), free(other), free(elsewhere);
}

Test(context, half_of_all_questions_are_for_training)
{
    int train = 0;

    for (int i = 0; i < 1000; i++) {
        char text[] = { 'q', (char)('0' + i / 100), (char)('0' + i / 10 % 10), (char)('0' + i % 10), '\0' };
        char *id = question_new_id("c", text);
        train += question_split(id) == SPLIT_TRAIN;
        free(id);
    }
    cr_assert(train > 440 && train < 560, "%d of 1000", train); /* 3.8 standard deviations */
}

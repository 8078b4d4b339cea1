/* Answers that outlive a run: what a later one takes from FILE and FILE.part, and what it refuses. */
#include "base/file.h"
#include "base/rows.h"
#include "qgen/checkpoint.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], file[96], part[96];

static void set_up(void)
{
    snprintf(folder, sizeof(folder), "/tmp/checkpoint.XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/q.jsonl", folder);
    snprintf(part, sizeof(part), "%s/q.jsonl.part", folder);
}

static void tear_down(void)
{
    unlink(file);
    unlink(part);
    rmdir(folder);
}

TestSuite(checkpoint, .init = set_up, .fini = tear_down);

#define HEADER "{\"evp\":\"answers\",\"version\":1,\"model\":\"m\",\"per_context\":2}\n"
static const struct checkpoint_key key = { .model = "m", .per_context = 2 };
static const char digest_a[] = "0123456789abcdef", digest_b[] = "fedcba9876543210";

static void write_text(const char *path, const char *text)
{
    struct err err;

    cr_assert_eq(file_write(path, text, strlen(text), &err), 0, "%s", err.msg);
}

static void open_it(struct checkpoint *c)
{
    struct err err;

    cr_assert_eq(checkpoint_open(c, file, &key, &err), 0, "%s", err.msg);
}

static void add(struct checkpoint *c, const char *id, const char *digest, const char *question)
{
    static const struct usage used = { 100, 7 };
    struct question_list list = { 0 };
    struct err err;

    cr_assert_eq(question_list_add(&list, question, strlen(question), 0, &err), 0);
    cr_assert_eq(checkpoint_add(c, &(struct checkpoint_part){ id, digest, 0, 1 }, &list, &used, &err), 0, "%s",
                 err.msg);
    question_list_release(&list);
}

/* Expects these questions about a context, joined by '|'; "" when no answer is known. */
static void expect(struct checkpoint *c, const char *id, const char *digest, const char *want)
{
    struct question_list list = { 0 };
    struct buf got = { 0 };

    cr_assert_eq(checkpoint_take(c, &(struct checkpoint_part){ id, digest, 0, 1 }, &list), *want != '\0', "%s", id);
    for (int i = 0; i < list.n; i++)
        buf_printf(&got, i ? "|%s" : "%s", list.at[i].text);
    cr_assert_str_eq(buf_str(&got), want);
    buf_release(&got);
    question_list_release(&list);
}

Test(checkpoint, answers_outlive_the_run)
{
    struct checkpoint c;

    open_it(&c);
    add(&c, "a", digest_a, "Who is it?");
    add(&c, "b", digest_b, "Why is it?");
    checkpoint_close(&c);
    open_it(&c); // stopped and begun again
    expect(&c, "a", digest_a, "Who is it?");
    expect(&c, "a", digest_a, ""); // taken
    add(&c, "c", digest_a, "When was it?");
    checkpoint_close(&c);
    open_it(&c);
    expect(&c, "c", digest_a, "When was it?");
    expect(&c, "b", digest_a, ""); // another text
    expect(&c, "b", digest_b, "Why is it?");
    expect(&c, "d", digest_a, "");
    checkpoint_remove(&c);
    checkpoint_close(&c);
    cr_assert(!file_exists(part));
}

static bool take(struct checkpoint *c, const char *digest, int section, int n_sections)
{
    struct question_list list;
    bool taken = checkpoint_take(c, &(struct checkpoint_part){ "a", digest, section, n_sections }, &list);

    if (taken)
        question_list_release(&list);
    return taken;
}

/* Of three sections one was answered and one paid for in vain. */
Test(checkpoint, knows_sections_and_what_was_paid)
{
    static const struct usage first = { 100, 7 }, second = { 1000, 70 };
    struct question_list list = { 0 }, none = { 0 };
    struct checkpoint c;
    struct err err;

    open_it(&c);
    cr_assert_eq(question_list_add(&list, "Who?", 4, 0, &err), 0);
    cr_assert_eq(checkpoint_add(&c, &(struct checkpoint_part){ "a", digest_a, 1, 3 }, &list, &first, &err), 0);
    cr_assert_eq(checkpoint_add(&c, &(struct checkpoint_part){ "a", digest_a, 2, 3 }, &none, &second, &err), 0);
    question_list_release(&list);
    checkpoint_close(&c);
    open_it(&c);
    cr_assert(c.taken == 1177 && c.n_replies == 2 && c.n_malformed == 0);
    cr_assert(!take(&c, digest_a, 0, 3) && !take(&c, digest_a, 2, 3) && !take(&c, digest_a, 0, 1));
    cr_assert(!take(&c, digest_a, 1, 4) && !take(&c, digest_b, 1, 3));
    cr_assert(take(&c, digest_a, 1, 3));
    checkpoint_close(&c);
}

Test(checkpoint, a_line_that_was_cut_is_dropped)
{
    struct checkpoint c;

    write_text(part, HEADER "{\"context\":\"a\",\"digest\":\"0123456789abcdef\",\"questions\":[\"Who?\",\"Why?\"]}\n"
                            "{\"context\":\"b\",\"digest\":\"0123456789abcdef\",\"questi");
    open_it(&c);
    add(&c, "c", digest_a, "When was it?");
    checkpoint_close(&c);
    open_it(&c);
    expect(&c, "a", digest_a, "Who?|Why?");
    expect(&c, "b", digest_a, "");
    expect(&c, "c", digest_a, "When was it?");
    checkpoint_close(&c);
}

Test(checkpoint, a_header_that_was_cut_is_written_again)
{
    struct checkpoint c;
    struct buf text = { 0 };
    struct err err;

    write_text(part, "{\"evp\":\"answ");
    open_it(&c);
    checkpoint_close(&c);
    cr_assert_eq(file_read(&text, part, 1000, &err), 0);
    cr_assert_str_eq(text.at, HEADER);
    buf_release(&text);
}

Test(checkpoint, malformed_lines_are_passed_over)
{
    static const char *const bad[] = {
        "{\"context\":\"a\"}\n",
        "\n",
        "{\"context\":\"a\",\"dig",
        "7\n",
        "\x80\n",
        "{\"context\":\"c\",\"digest\":\"0123456789abcdef\",\"section\":3,\"sections\":2}\n",
        "{\"context\":\"c\",\"digest\":\"0123456789abcdef\",\"section\":0}\n"
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct checkpoint c;
        struct buf text = { 0 };
        buf_printf(&text,
                   HEADER "%s{\"context\":\"b\",\"digest\":\"0123456789abcdef\",\"questions\":[\"Who?\"]}\n"
                          "{\"context\":\"c\",\"digest\":\"0123456789abcdef\",\"questions\":[\"Why?\"]}\n",
                   bad[i]);
        write_text(part, text.at);
        open_it(&c);
        cr_assert_eq(c.n_malformed, 1, "%s", bad[i]);
        expect(&c, "b", digest_a, i == 2 ? "" : "Who?"); // two lines in one
        expect(&c, "c", digest_a, "Why?");
        checkpoint_close(&c);
        buf_release(&text);
    }
}

Test(checkpoint, belongs_to_one_run_at_a_time)
{
    struct checkpoint c, other;
    struct err err;

    open_it(&c);
    add(&c, "a", digest_a, "Who is it?");
    cr_assert_eq(checkpoint_open(&other, file, &key, &err), ERR_IO);
    cr_assert(strstr(err.msg, "another run is writing '"), "%s", err.msg);
    add(&c, "b", digest_b, "Why is it?");
    checkpoint_close(&c);
    open_it(&other);
    expect(&other, "a", digest_a, "Who is it?");
    expect(&other, "b", digest_b, "Why is it?");
    checkpoint_remove(&other);
    open_it(&c); // FILE.part is another file now
    cr_assert_eq(c.answers.n, 0);
    checkpoint_close(&c);
    checkpoint_close(&other);
}

Test(checkpoint, other_files_are_refused_and_kept)
{
    static const struct {
        const char *text, *says;
    } row[] = {
        { "{\"evp\":\"contexts\",\"version\":1}\n", "holds no answers; remove it, or write to another file" },
        { "{\"evp\":\"answers\",\"version\":2,\"model\":\"m\",\"per_context\":2}\n", "holds no answers" },
        { "{\"evp\":\"answers\",\"version\":1,\"model\":\"n\",\"per_context\":2}\n",
          "holds answers of model 'n', 2 per context; remove it, or use the options it was made with" },
        { "{\"evp\":\"answers\",\"version\":1,\"model\":\"m\",\"per_context\":3}\n", "model 'm', 3 per context" },
        { "my notes\n", "line 1: malformed JSON" },
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct checkpoint c;
        struct buf after = { 0 };
        struct err err;
        write_text(part, row[i].text);
        cr_assert_eq(checkpoint_open(&c, file, &key, &err), ERR_FORMAT, "%s", row[i].text);
        cr_assert(strstr(err.msg, row[i].says), "%s", err.msg);
        cr_assert_eq(file_read(&after, part, 1000, &err), 0);
        cr_assert_str_eq(after.at, row[i].text);
        buf_release(&after);
    }
}

#define FINISHED(model) "{\"evp\":\"questions\",\"version\":1,\"api\":{\"model\":\"" model "\",\"per_context\":2}}\n"
#define ROW(context, digest, text)                                                                                     \
    "{\"id\":\"q\",\"context\":\"" context "\",\"text\":\"" text "\",\"digest\":\"" digest "\"}\n"

/* Of two answers about one context, that in FILE.part is the later one. */
Test(checkpoint, a_finished_file_has_answers_too)
{
    struct checkpoint c;

    write_text(file, FINISHED("m") ROW("a", "0123456789abcdef", "Who?") ROW("a", "0123456789abcdef", "Why?")
                         ROW("b", "0123456789abcdef", "When?") "{\"end\":true,\"rows\":3}\n");
    write_text(part, HEADER "{\"context\":\"b\",\"digest\":\"fedcba9876543210\",\"questions\":[\"Where?\"]}\n");
    open_it(&c);
    expect(&c, "a", digest_a, "Who?|Why?");
    expect(&c, "b", digest_a, "");
    expect(&c, "b", digest_b, "Where?");
    checkpoint_close(&c);
}

Test(checkpoint, finished_files_that_are_of_no_use_are_passed_over)
{
    static const char *const text[] = { FINISHED("n")
                                            ROW("a", "0123456789abcdef", "Who?") "{\"end\":true,\"rows\":1}\n",
                                        "{\"evp\":\"questions\",\"version\":1}\n" ROW("a", "0123456789abcdef", "Who?"),
                                        "not JSON", "" };

    for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
        struct checkpoint c;
        write_text(file, text[i]);
        open_it(&c);
        expect(&c, "a", digest_a, "");
        checkpoint_close(&c);
    }
}

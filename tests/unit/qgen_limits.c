/* Every bound of qgen/ that a text or a reply can reach: below it, at it and above it. */
#include "base/buf.h"
#include "base/json.h"
#include "qgen/api.h"
#include "qgen/prompt.h"
#include "qgen/question_list.h"
#include "qgen/reply.h"
#include "qgen/segments.h"
#include "qgen/source.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_many(struct buf *out, char c, int n)
{
    for (int i = 0; i < n; i++)
        buf_addc(out, c);
}

/* ---- the list ------------------------------------------------------------- */

/* White space around a question does not count. */
Test(qgen_limits, length_of_a_question)
{
    static const struct {
        int length, added;
    } row[] = { { 2, 0 }, { 3, 1 }, { 4, 1 }, { 999, 1 }, { 1000, 1 }, { 1001, 0 } };
    struct question_list list = { 0 };
    struct err err;

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct buf text = { 0 };
        int before = list.n;
        buf_adds(&text, " \n ");
        add_many(&text, 'x', row[i].length);
        buf_adds(&text, "  ");
        cr_assert_eq(question_list_add(&list, text.at, text.n, 0, &err), 0);
        cr_assert_eq(list.n - before, row[i].added, "%d bytes", row[i].length);
        buf_release(&text);
    }
    question_list_release(&list);
}

/* ---- segments ------------------------------------------------------------- */

/* The number of segments of the text; *heading (may be NULL): is the second segment a heading? */
static int count_segments(const struct buf *text, bool *heading)
{
    struct segments s;
    struct err err;

    cr_assert_eq(segments_cut(&s, text->at, text->n, &err), 0);
    int n = s.n;
    if (heading)
        *heading = n > 1 && s.at[1].heading;
    for (int i = 0; i < n; i++)
        cr_assert_leq(s.at[i].n, MAX_SEGMENT);
    segments_release(&s);
    return n;
}

Test(qgen_limits, length_of_a_segment)
{
    for (int n = 399; n <= 401; n++) {
        struct buf text = { 0 };
        add_many(&text, 'x', n);
        cr_assert_eq(count_segments(&text, NULL), n > 400 ? 2 : 1, "%d bytes", n);
        text.at[300] = ' '; // where it would be cut
        cr_assert_eq(count_segments(&text, NULL), n > 400 ? 2 : 1, "%d bytes", n);
        buf_release(&text);
    }
}

Test(qgen_limits, length_of_a_wrapped_line)
{
    static const int length[] = { 39, 40, 41, 119, 120, 121 }, segments[] = { 2, 1, 1, 1, 1, 2 };

    for (int i = 0; i < 6; i++) {
        struct buf text = { 0 };
        add_many(&text, 'a', length[i]);
        buf_adds(&text, "\nand so on");
        cr_assert_eq(count_segments(&text, NULL), segments[i], "%d bytes", length[i]);
        buf_release(&text);
    }
}

/* A line that opens an item is no continuation of a wrapped one. */
Test(qgen_limits, labels_and_numbers_that_open_a_line)
{
    static const struct {
        char c;
        int n;
        const char *after;
        int segments;
    } row[] = { { 'b', 23, ": hi", 2 },      { 'b', 24, ": hi", 2 },      { 'b', 25, ": hi", 1 },
                { '1', 3, ". so it is", 2 }, { '1', 4, ". so it is", 2 }, { '1', 5, ". so it is", 1 } };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct buf text = { 0 };
        add_many(&text, 'a', 60);
        buf_addc(&text, '\n');
        add_many(&text, row[i].c, row[i].n);
        buf_adds(&text, row[i].after);
        cr_assert_eq(count_segments(&text, NULL), row[i].segments, "row %zu", i);
        buf_release(&text);
    }
}

Test(qgen_limits, length_of_a_heading)
{
    static const int length[] = { 2, 3, 79, 80, 81 }, is_heading[] = { 0, 1, 1, 1, 0 };

    for (int i = 0; i < 5; i++) {
        struct buf text = { 0 };
        bool heading;
        buf_adds(&text, "It opens.\n\n");
        add_many(&text, 'h', length[i]);
        buf_adds(&text, "\n\nIt goes on.");
        cr_assert_eq(count_segments(&text, &heading), 3);
        cr_assert_eq(heading, is_heading[i], "%d bytes", length[i]);
        buf_release(&text);
    }
}

/* ---- questions from the text ---------------------------------------------- */

/* The question of that kind about segment i, or "". */
static void ask_about(struct buf *out, const struct buf *text, enum source_kind kind, int i)
{
    struct source source;
    struct err err;

    cr_assert_eq(source_open(&source, text->at, &err), 0);
    cr_assert_gt(source.segments.n, i);
    source_question(&source, kind, i, out);
    source_close(&source);
}

static void expect_label(int length, int repeats, bool left_out)
{
    struct buf text = { 0 }, question = { 0 };

    buf_adds(&text, "It opens with words that have no label.\n");
    for (int i = 0; i < repeats; i++) {
        add_many(&text, 'L', length);
        buf_printf(&text, ": alpha%d beta%d gamma%d delta%d epsilon%d zeta%d eta%d theta%d.\n", i, i, i, i, i, i, i, i);
    }
    ask_about(&question, &text, SOURCE_REPEAT, 1);
    cr_assert_eq(strstr(buf_str(&question), "\"alpha0 beta0") != NULL, left_out, "%d bytes, %d times: %s", length,
                 repeats, buf_str(&question));
    cr_assert_eq(strstr(buf_str(&question), "LLL: alpha0") != NULL, !left_out);
    buf_release(&text);
    buf_release(&question);
}

Test(qgen_limits, labels_that_repeat_are_left_out)
{
    expect_label(5, 2, false);
    expect_label(5, 3, true);
    expect_label(5, 4, true);
    expect_label(23, 3, true);
    expect_label(24, 3, true);
    expect_label(25, 3, false);
}

/* Sentences of 100 bytes, all of them instructions; the first is a byte shorter or longer. */
Test(qgen_limits, length_of_a_templates_opening)
{
    static const int first[] = { 16, 15, 15 };

    for (int more = -1; more <= 1; more++) {
        struct buf text = { 0 };
        struct source source;
        struct err err;
        for (int i = 0; i < 20; i++) {
            buf_printf(&text, "Please do %c", 'a' + i);
            add_many(&text, 'x', 100 - 13 + (i == 0 ? more : 0));
            buf_adds(&text, ". ");
        }
        cr_assert_eq(source_open(&source, text.at, &err), 0);
        cr_assert_eq(source.begin, (size_t)(1500 + more + (more < 0 ? 100 : 0)), "begins at %zu", source.begin);
        cr_assert_eq(source.first, first[more + 1]);
        source_close(&source);
        buf_release(&text);
    }
}

Test(qgen_limits, length_of_a_term)
{
    static const int length[] = { 2, 3, 40, 41 }, asked[] = { 0, 1, 1, 0 };

    for (int i = 0; i < 4; i++) {
        struct buf text = { 0 }, question = { 0 };
        add_many(&text, 't', length[i]);
        buf_adds(&text, " means a house by the sea.");
        ask_about(&question, &text, SOURCE_MEANING, 0);
        cr_assert_eq(question.n > 0, asked[i], "%d bytes", length[i]);
        buf_release(&text);
        buf_release(&question);
    }
}

/* Two sentences share their first words: a quotation needs one more, and has 4 + 16 at most. */
Test(qgen_limits, length_of_a_quotation)
{
    for (int shared = 18; shared <= 20; shared++) {
        struct buf text = { 0 }, question = { 0 };
        for (int s = 0; s < 2; s++) {
            for (int w = 0; w < shared; w++)
                buf_printf(&text, w ? " word%c" : "Word%c", 'a' + w);
            buf_printf(&text, " %s and some more words. ", s ? "other" : "first");
        }
        ask_about(&question, &text, SOURCE_REPEAT, 0);
        cr_assert_eq(question.n > 0, shared < 20, "%d words are shared", shared);
        buf_release(&text);
        buf_release(&question);
    }
}

/* ---- requests ------------------------------------------------------------- */

/* 400 tokens go to the instructions, 60 to each question of the reply, 200 bytes to the slack of a cut. */
Test(qgen_limits, parts_of_a_text)
{
    enum { TAKEN = 400 + 8 * 60 };
    static const struct {
        int window;
        size_t fits;          // in one part
    } row[] = { { 512, 824 }, // never fewer than 256 tokens
                { TAKEN + 256, 824 },
                { TAKEN + 257, 257 * 4 - 200 },
                { 32768, (32768 - TAKEN) * 4 - 200 } };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        cr_assert_eq(prompt_slices(row[i].fits - 1, row[i].window, 8), 1);
        cr_assert_eq(prompt_slices(row[i].fits, row[i].window, 8), 1);
        cr_assert_eq(prompt_slices(row[i].fits + 1, row[i].window, 8), 2, "window %d", row[i].window);
        cr_assert_eq(prompt_slices(2 * row[i].fits, row[i].window, 8), 2);
        cr_assert_eq(prompt_slices(2 * row[i].fits + 1, row[i].window, 8), 3);
    }
}

/* A part is cut at white space up to 200 bytes before its end, but not further back. */
Test(qgen_limits, slack_of_a_cut)
{
    for (int back = 198; back <= 200; back++) {
        struct buf text = { 0 };
        add_many(&text, 'x', 2000);
        text.at[1000 - back] = ' ';
        size_t at = prompt_slice(text.at, text.n, 1, 2).at;
        cr_assert_eq(at, back < 200 ? 1000 - (size_t)back : 1000, "%d back: %zu", back, at);
        buf_release(&text);
    }
}

/* ---- replies -------------------------------------------------------------- */

static int n_questions(const struct buf *content)
{
    struct question_list list = { 0 };
    struct err err;

    cr_assert_eq(reply_questions(&list, 0, content->at, &err), 0);
    int n = list.n;
    question_list_release(&list);
    return n;
}

Test(qgen_limits, depth_of_a_list)
{
    for (int depth = 3; depth <= 5; depth++) {
        struct buf text = { 0 };
        add_many(&text, '[', depth);
        buf_adds(&text, "\"Who is it\"");
        add_many(&text, ']', depth);
        cr_assert_eq(n_questions(&text), depth <= 4, "depth %d", depth);
        buf_release(&text);
    }
}

Test(qgen_limits, brackets_before_the_list)
{
    for (int n = 62; n <= 64; n++) {
        struct buf text = { 0 };
        add_many(&text, '{', n);
        buf_adds(&text, "[\"Who is it\"]");
        cr_assert_eq(n_questions(&text), n < 64, "%d brackets", n);
        buf_release(&text);
    }
}

Test(qgen_limits, number_before_a_question)
{
    static const char *const text[] = { "[\"9. Who?\"]", "[\"999. Who?\"]", "[\"1000. Who?\"]" };
    static const char *const question[] = { "Who?", "Who?", "1000. Who?" };

    for (int i = 0; i < 3; i++) {
        struct question_list list = { 0 };
        struct err err;
        cr_assert(!reply_questions(&list, 0, text[i], &err) && list.n == 1);
        cr_assert_str_eq(list.at[0].text, question[i]);
        question_list_release(&list);
    }
}

Test(qgen_limits, length_of_a_complaint)
{
    for (int n = 199; n <= 201; n++) {
        struct buf body = { 0 }, said = { 0 };
        buf_adds(&body, "{\"message\":\"");
        add_many(&body, 'x', n);
        buf_adds(&body, "\"}");
        reply_complaint(&said, &(struct reply_body){ body.at, body.n, NULL });
        cr_assert_eq(said.n, n < 200 ? (size_t)n : 200);
        buf_release(&body);
        buf_release(&said);
    }
}

/* Parts of the key are hidden from 8 characters on. */
Test(qgen_limits, length_of_a_secret)
{
    static const struct {
        const char *secret, *says, *said;
    } row[] = { { "abcdefg", "abcdefg", "abcdefg" },
                { "abcdefgh", "abcdefgh", "********" },
                { "abcdefghi", "abcdefghi", "*********" },
                { "abcdefghijklm", "defghij", "defghij" },
                { "abcdefghijklm", "defghijk", "********" } };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct buf body = { 0 }, said = { 0 };
        buf_printf(&body, "{\"message\":\"%s\"}", row[i].says);
        reply_complaint(&said, &(struct reply_body){ body.at, body.n, row[i].secret });
        cr_assert_str_eq(buf_str(&said), row[i].said);
        buf_release(&body);
        buf_release(&said);
    }
}

Test(qgen_limits, status_that_is_tried_again)
{
    static const struct {
        int status;
        enum api_verdict verdict;
    } row[] = { { 199, API_FAIL },  { 200, API_TAKE },  { 201, API_FAIL }, { 400, API_FAIL },
                { 401, API_STOP },  { 402, API_FAIL },  { 403, API_STOP }, { 404, API_FAIL },
                { 407, API_FAIL },  { 408, API_AGAIN }, { 409, API_FAIL }, { 428, API_FAIL },
                { 429, API_AGAIN }, { 430, API_FAIL },  { 499, API_FAIL }, { 500, API_AGAIN } };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
        cr_assert_eq(api_judge(&(struct http_reply){ .outcome = HTTP_REPLIED, .status = row[i].status }, 0),
                     row[i].verdict, "%d", row[i].status);
}

/* Half a second doubles with each try, up to 30 seconds; Retry-After counts up to 120. */
Test(qgen_limits, waits)
{
    static const double max[] = { 0.5, 1, 2, 4, 8, 16, 30, 30 };
    struct rng rng = rng_new(1);

    for (int tries = 0; tries < 8; tries++) {
        double longest = 0;
        for (int i = 0; i < 1000; i++)
            longest = fmax(longest, api_delay(tries, 0, &rng));
        cr_assert(longest <= max[tries] && longest > 0.98 * max[tries], "try %d: %g s", tries, longest);
    }
    cr_assert_eq(api_delay(0, 119, &rng), 119);
    cr_assert_eq(api_delay(0, 120, &rng), 120);
    cr_assert_eq(api_delay(0, 121, &rng), 120);
}

/* ---- tokens and endpoints ------------------------------------------------- */

Test(qgen_limits, tokens_of_a_reply)
{
    static const struct {
        const char *json;
        int64_t count;
    } row[] = { { "{\"n\":2147483646}", 2147483646 },
                { "{\"n\":2147483647}", 2147483647 },
                { "{\"n\":2147483648}", 0 },
                { "{\"n\":1}", 1 },
                { "{\"n\":-1}", 0 },
                { "{\"n\":1.5}", 0 },
                { "{\"n\":\"7\"}", 0 },
                { "{}", 0 } };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct err err;
        struct json *v = json_parse(row[i].json, strlen(row[i].json), &err);
        cr_assert_eq(usage_count(v, "n"), row[i].count, "%s", row[i].json);
        json_free(v);
    }
}

Test(qgen_limits, address_of_an_endpoint)
{
    static const struct {
        const char *base;
        bool good;
    } row[] = { { "http://h/v1", true },     { "https://h/v1", true },  { "h/v1", false },
                { "ftp://h/v1", false },     { "http://h/v1,", false }, { "http://k@h/v1", false },
                { "http://h/v1?k=1", false } };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct err err;
        cr_assert_eq(api_base_check(row[i].base, &err), row[i].good ? 0 : ERR_USAGE, "%s", row[i].base);
    }
}

/* RULER's rows: their size, what is hidden in them, and that a seed's rows stay. Templates, depths and answers are
 * compared with RULER's own scripts in tests/golden/ruler. */
#include "datasets/ruler.h"

#include <criterion/criterion.h>
#include <string.h>

static const char essay[] = "One fish swims. Two (red) fish?\nThey \"eat.\" Then\tthey sleep! No end";

/* Four bytes are a token. */
static int64_t quarter(void *arg, const char *text, struct err *e)
{
    (void)arg;
    (void)e;
    return (int64_t)strlen(text) / 4;
}

static int64_t refuse(void *arg, const char *text, struct err *e)
{
    (void)arg;
    (void)text;
    return err_set(e, ERR_IO, "no tokens");
}

static void note(void *arg, enum import_note what, const char *sentence)
{
    (void)arg;
    (void)what;
    cr_assert(false, "%s", sentence);
}

/* The rows of some tasks, or of all for "". */
static int make(struct import *im, const char *wanted, struct ruler r, struct err *e)
{
    *im = (struct import){ .note = note };
    for (; *wanted; wanted += strspn(wanted + strcspn(wanted, " "), " ") + strcspn(wanted, " "))
        cr_assert(map_add(&im->wanted, wanted, strcspn(wanted, " "), NULL) >= 0);
    r.tokens = r.tokens ? r.tokens : 1024;
    r.rows = r.rows ? r.rows : 2;
    r.essay = r.essay ? r.essay : essay;
    r.count = r.count ? r.count : quarter;
    return ruler_make(im, &r, e);
}

static int times(const char *text, const char *part)
{
    int n = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

Test(ruler, all_tasks_have_rows_of_nearly_the_length)
{
    struct import im;
    struct err e;

    cr_assert(!make(&im, "", (struct ruler){ .tokens = 5000, .rows = 3 }, &e), "%s", e.msg);
    cr_assert_eq(im.contexts.n, 33);
    for (int i = 0; i < im.contexts.n; i++) {
        const struct context *c = &im.contexts.at[i];
        size_t n = strlen(c->text) + strlen(c->inputs.at->question) + strlen(c->ask) - strlen("{question}{reply}");
        cr_assert(n / 4 <= 5000 - 30 && n / 4 > 4600, "%s: %zu", c->id, n / 4);
        cr_assert_eq(c->inputs.n, 1);
        cr_assert(c->inputs.at->n_answers > 0, "%s", c->id);
    }
    cr_assert_str_eq(im.contexts.at[0].id, "niah_single_1/5000-1");
    cr_assert_str_eq(im.contexts.at[32].id, "fwe/5000-3");
    import_release(&im);
}

Test(ruler, needles_are_between_the_sentences_of_an_essay_which_is_whole_without_them)
{
    static const char *const before[] = { "fish? ", "swims. ", "\"eat.\" ", "sleep! ", "afterwards.\n" };
    struct import im;
    struct err e;

    cr_assert(!make(&im, "niah_multikey_1", (struct ruler){ .rows = 20 }, &e));
    for (int i = 0; i < im.contexts.n; i++) {
        char *text = im.contexts.at[i].text, *at = text;
        cr_assert_eq(times(text, "One of the special magic numbers for "), 4);
        for (int k = 0; k < 4; k++) {
            bool between = false;
            at = strstr(at, "One of the");
            for (size_t b = 0; b < sizeof(before) / sizeof(*before); b++)
                between |= strncmp(at - strlen(before[b]), before[b], strlen(before[b])) == 0;
            char *end = strchr(at, '.') + 2;
            cr_assert(between || k > 0 || end[-1] == '\n', "%s", at);
            memmove(at, end, strlen(end) + 1);
        }
        at = strchr(text, '\n') + 1;
        cr_assert(strncmp(at, "One fish swims. Two (red) fish? They \"eat.\" Then they sleep! No end One fish", 60) ==
                  0);
    }
    import_release(&im);
}

Test(ruler, a_query_of_several_keys_has_the_answer_of_each)
{
    struct import im;
    struct err e;

    cr_assert(!make(&im, "niah_multiquery niah_multivalue", (struct ruler){ 0 }, &e));
    for (int i = 0; i < im.contexts.n; i++) {
        const struct context_input *in = im.contexts.at[i].inputs.at;
        cr_assert_eq(in->n_answers, 4);
        cr_assert_eq(times(in->question, ", "), strcmp(im.contexts.at[i].dataset, "niah_multiquery") ? 0 : 3);
        cr_assert(!!strstr(in->question, ", and ") == !strcmp(im.contexts.at[i].dataset, "niah_multiquery"));
        for (int a = 0; a < 4; a++) {
            const char *at = strstr(im.contexts.at[i].text, in->answer[a]);
            while (strncmp(at, " for ", 5) != 0)
                at--;
            char key[64];
            cr_assert(sscanf(at, " for %63s is", key) == 1 && strstr(in->question, key), "%s %s", key, in->question);
        }
    }
    import_release(&im);
}

Test(ruler, rows_depend_on_seed_length_and_number_alone)
{
    struct import few, many, other;
    struct err e;

    cr_assert(!make(&few, "vt cwe", (struct ruler){ .seed = 4 }, &e));
    cr_assert(!make(&many, "", (struct ruler){ .seed = 4, .rows = 3 }, &e));
    cr_assert(!make(&other, "vt", (struct ruler){ .seed = 5 }, &e));
    cr_assert_eq(few.contexts.n, 4);
    for (int i = 0; i < few.contexts.n; i++) {
        int at = map_find(&many.contexts.ids, few.contexts.at[i].id, strlen(few.contexts.at[i].id));
        cr_assert(at >= 0);
        cr_assert_str_eq(many.contexts.at[at].text, few.contexts.at[i].text);
        cr_assert(i == 0 || strcmp(few.contexts.at[i].text, few.contexts.at[i - 1].text) != 0);
    }
    cr_assert_str_neq(few.contexts.at[0].text, other.contexts.at[0].text);
    import_release(&few);
    import_release(&many);
    import_release(&other);
}

Test(ruler, without_essays_there_are_the_tasks_that_need_none)
{
    struct import im;
    struct err e;

    cr_assert(!make(&im, "", (struct ruler){ .essay = " \n" }, &e));
    cr_assert_eq(im.contexts.n, 12);
    import_release(&im);
    cr_assert_eq(make(&im, "vt niah_single_2", (struct ruler){ .essay = "" }, &e), ERR_USAGE);
    cr_assert_str_eq(e.msg, "niah_single_2 hides its needles in essays: name a file of text");
    import_release(&im);
}

Test(ruler, what_does_not_fit_and_what_cannot_be_counted_fails)
{
    struct import im;
    struct err e;

    cr_assert_eq(make(&im, "niah_multikey_3", (struct ruler){ .tokens = 300 }, &e), ERR_FORMAT);
    cr_assert_str_eq(e.msg, "300 tokens are too few for niah_multikey_3");
    import_release(&im);
    cr_assert_eq(make(&im, "vt", (struct ruler){ .count = refuse }, &e), ERR_IO);
    import_release(&im);
}

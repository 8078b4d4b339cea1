/* What occurs in a text twice: against comparing every pair of suffixes, and at the limits. The offline generator,
 * which searches small texts and finds the repeats of those that repeat themselves, asks the same questions either way.
 */
#include "base/buf.h"
#include "base/rng.h"
#include "qgen/repeats.h"
#include "qgen/source.h"

#include <criterion/criterion.h>
#include <string.h>

static int longest_by_hand(const char *text, int n, int i)
{
    int longest = 0;

    for (int j = 0; j < n; j++) {
        int shared = 0;
        while (j != i && i + shared < n && j + shared < n && text[i + shared] == text[j + shared])
            shared++;
        longest = shared > longest ? shared : longest;
    }
    return longest;
}

Test(repeats, are_those_of_all_pairs_of_suffixes)
{
    struct rng rng = rng_new(5);
    struct repeats r;
    struct err err;
    char text[96];

    for (int t = 0; t < 3000; t++) {
        int n = (int)rng_below(&rng, sizeof(text)), letters = 1 + (int)rng_below(&rng, 4);
        for (int i = 0; i < n; i++)
            text[i] = (char)(t % 2 ? 'a' + (int)rng_below(&rng, (uint64_t)letters)
                                   : 0x7e + (int)rng_below(&rng, (uint64_t)letters)); // also above 127
        text[n] = '\0';
        cr_assert_eq(repeats_find(&r, text, (size_t)n, &err), 0, "%s", err.msg);
        for (int i = 0; i < n; i++)
            cr_assert_eq(r.longest[i], longest_by_hand(text, n, i), "byte %d of '%s'", i, text);
        repeats_release(&r);
    }
}

Test(repeats, stop_counting_at_their_limit)
{
    enum { N = REPEATS_MAX + 3 };
    struct buf text = { 0 };
    struct repeats r;
    struct err err;

    for (int i = 0; i < N; i++)
        buf_addc(&text, 'a');
    cr_assert_eq(repeats_find(&r, buf_str(&text), text.n, &err), 0);
    cr_assert_eq(r.longest[0], REPEATS_MAX); // N - 1
    cr_assert_eq(r.longest[2], REPEATS_MAX); // one byte earlier it is N - 2; here as well, since it overlaps
    cr_assert_eq(r.longest[N - 1], 1);
    cr_assert(repeats_none(&r, N - 1, 2) && !repeats_none(&r, N - 1, 1));
    repeats_release(&r);
    buf_release(&text);
    cr_assert_eq(repeats_find(&r, "", INT32_MAX - 1, &err), ERR_FAIL);
}

/* Sentences of few words, some of them whole passages over again. */
static void repetitive(struct buf *text, struct rng *rng, int sentences)
{
    static const char *const word[] = { "the", "King", "of", "12", "Denmark", "means", "less", "than", "zeta", "sees" };

    for (int i = 0; i < sentences; i++) {
        size_t start = text->n;
        for (int w = 4 + (int)rng_below(rng, 9); w > 0; w--)
            buf_printf(text, "%s%s", word[rng_below(rng, 10)], w > 1 ? rng_below(rng, 9) ? " " : "\n   " : ".\n");
        if (rng_below(rng, 3) == 0 && start > 200) {
            char passage[201];
            memcpy(passage, text->at + rng_below(rng, start - 200), 200);
            buf_add(text, passage, 200);
        }
    }
}

Test(repeats, ask_the_same_questions_as_searching)
{
    struct rng rng = rng_new(11);
    int asked = 0, compared = 0, by_search = 0;

    for (int t = 0; t < 20; t++) {
        struct buf text = { 0 };
        struct source found, searched;
        struct err err;
        repetitive(&text, &rng, 60);
        cr_assert_eq(source_open(&found, buf_str(&text), &err), 0);
        cr_assert_eq(source_open(&searched, buf_str(&text), &err), 0);
        cr_assert_eq(repeats_find(&found.repeats, found.flat.at, found.flat.n, &err), 0);
        for (int i = 0; i < found.segments.n; i++)
            for (enum source_kind kind = SOURCE_REPEAT; kind < SOURCE_KINDS; kind++, compared++) {
                struct buf a = { 0 }, b = { 0 };
                searched.searched = 0;
                repeats_release(&searched.repeats);
                bool asks = source_question(&found, kind, i, &a);
                cr_assert_eq(asks, source_question(&searched, kind, i, &b), "text %d, segment %d, kind %d", t, i, kind);
                cr_assert_str_eq(buf_str(&a), buf_str(&b));
                asked += asks;
                by_search += searched.repeats.longest == NULL;
                buf_release(&a);
                buf_release(&b);
            }
        source_close(&found);
        source_close(&searched);
        buf_release(&text);
    }
    cr_assert(asked > 500 && compared - asked > 500 && by_search > compared / 2, "%d of %d", asked, compared);
}

Test(repeats, bound_the_searching)
{
    struct buf text = { 0 }, question = { 0 };
    struct source s;
    struct err err;

    for (int i = 0; i < 2000; i++)
        buf_adds(&text, "The licence says that nothing may be changed here.\n");
    cr_assert_eq(source_open(&s, buf_str(&text), &err), 0);
    for (int i = 0; i < s.segments.n; i++)
        cr_assert(!source_question(&s, SOURCE_REPEAT, i, &question));
    cr_assert_not_null(s.repeats.longest);
    cr_assert_leq(s.searched, 300 * s.flat.n);
    source_close(&s);
    buf_release(&text);
}

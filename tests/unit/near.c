/* Near misses of words: what is suggested, and what is too far off for it. */
#include "base/near.h"

#include <criterion/criterion.h>
#include <string.h>

Test(near, a_word_that_begins_so_or_differs_in_a_third_of_its_letters)
{
    static const char *const words[] = { "tiers", "seconds", "min-quality", NULL, "snapkv", "verify" };
    static const struct {
        const char *text, *near;
    } row[] = {
        { "tie", "tiers" },       // the beginning
        { "t", NULL },            // one letter may begin anything
        { "TIERS", "tiers" },     // capitals
        { "teirs", "tiers" },     // two of five
        { "teirz", NULL },        // three of five
        { "second", "seconds" },  // the beginning
        { "zeconts", "seconds" }, // two of seven
        { "zecontz", NULL },      // three of seven
        { "min_quality", "min-quality" },
        { "SnapKVPress", "snapkv" }, // the whole word, and more
        { "snapk", "snapkv" },       // the beginning
        { "snpkv", "snapkv" },       // a letter is missing
        { "", NULL },
        { "nothing-like-it", NULL },
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        const char *near = near_word(row[i].text, strlen(row[i].text), words, sizeof(words) / sizeof(*words));
        cr_assert_eq(near == NULL, row[i].near == NULL, "%s: %s", row[i].text, near ? near : "nothing");
        if (near)
            cr_assert_str_eq(near, row[i].near);
    }
}

Test(near, long_words_are_not_compared)
{
    char text[80], word[80];
    const char *words[] = { word };

    memset(text, 'x', sizeof(text));
    memset(word, 'x', sizeof(word));
    word[63] = '\0';
    cr_assert_eq(near_word(text, 63, words, 1), word);
    cr_assert_null(near_word(text, 64, words, 1));
    word[63] = 'x';
    word[64] = '\0';
    cr_assert_null(near_word(text, 63, words, 1));
}

/* Prompts that are alike but for a few bytes in front: whatever these are, without them the prompts are the same. */
#include "replay/stamp.h"

#include "base/rng.h"

#include <criterion/criterion.h>
#include <string.h>

enum { TEXT = 3000, PROMPTS = 30 };

static size_t put_random(char *to, size_t n, struct rng *rng, int letters)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (char)('a' + rng_below(rng, (uint64_t)letters));
    return n;
}

struct kind {
    size_t before, least, most; // bytes in front of it; its own
};

/* A beginning, what changes, and the text. */
static size_t put_prompt(char *to, const char *text, const struct kind *k, struct rng *rng)
{
    memcpy(to, text, k->before);
    size_t n = k->before + put_random(to + k->before, k->least + rng_below(rng, k->most - k->least + 1), rng, 3);
    memcpy(to + n, text + k->before, TEXT - k->before);
    return n + TEXT - k->before;
}

/* Returns how many of the prompts are found to be alike. A window with what changes may have the least hash, and then
 * a prompt is a group of its own. */
static int try_stamps(struct rng *rng, const struct kind *k)
{
    static char prompt[PROMPTS][TEXT + STAMP_MAX], rest[TEXT + STAMP_MAX], text[TEXT];
    size_t n[PROMPTS], n_cut, n_rest = 0;
    const struct prompt_stamp *first = NULL;
    struct stamps s = { 0 };
    int found = 0;

    put_random(text, sizeof(text), rng, 20);
    for (int i = 0; i < PROMPTS; i++) {
        n[i] = put_prompt(prompt[i], text, k, rng);
        cr_assert(stamps_take(&s, prompt[i], n[i]));
    }
    for (int i = 0; i < PROMPTS; i++) {
        const struct prompt_stamp *group = stamps_cut(&s, prompt[i], n[i], &n_cut);
        if (!group)
            continue;
        cr_assert(group->begin >= k->before && group->end <= k->before + k->most && n_cut <= STAMP_MAX);
        n[i] -= n_cut;
        memmove(prompt[i] + group->begin, prompt[i] + group->begin + n_cut, n[i] - group->begin);
        found++;
        if (!first) {
            first = group;
            memcpy(rest, prompt[i], n[i]);
            n_rest = n[i];
        }
        cr_assert(group != first || (n[i] == n_rest && memcmp(prompt[i], rest, n_rest) == 0));
    }
    stamps_release(&s);
    return found;
}

Test(stamp, is_cut_whatever_it_is)
{
    struct rng rng = rng_new(1);
    int found = 0;

    for (int i = 0; i < 100; i++) {
        struct kind k = { rng_below(&rng, 700), 1 + rng_below(&rng, 40), rng_below(&rng, 60) };
        k.most += k.least;
        found += try_stamps(&rng, &k);
    }
    cr_assert(found > 100 * PROMPTS * 8 / 10, "%d of %d", found, 100 * PROMPTS);
}

Test(stamp, is_not_what_all_have_nor_what_has_nothing_in_common)
{
    struct rng rng = rng_new(2);
    struct stamps s = { 0 };
    char text[TEXT];
    size_t n;

    cr_assert(!stamps_any(&s) && !stamps_cut(&s, "x", 1, &n));
    cr_assert(stamps_take(&s, "", 0) && stamps_take(&s, "short", 5));
    for (int i = 0; i < 3000; i++) {
        put_random(text, sizeof(text), &rng, 20);
        cr_assert(stamps_take(&s, text, sizeof(text)) && stamps_take(&s, text, sizeof(text)));
        text[TEXT - 1] = '!'; // behind the head
        cr_assert(stamps_take(&s, text, sizeof(text)));
    }
    cr_assert(!stamps_any(&s));
    stamps_release(&s);
}

/* The longest placed prefix of a prompt, compared with a search of all contexts one by one. */
#include "base/rng.h"
#include "loader/store/index.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 400, IDS = 900, VIEWS = 3 };

static const char *const spaces[] = { "other", "model" }, *const configs[] = { "none" };

/* A context is the first `n` ids of the prompt, with another last id unless it `matches`. */
struct context {
    int n, view;
    bool matches;
};

static int by_order(const void *a, const void *b)
{
    return index_compare(a, b);
}

static struct index_record record_of(const struct context *c, const int32_t *prompt)
{
    struct index_record r = { .n_tokens = UINT32_MAX, .size = 1 };
    char hex[DIGEST_HEX];
    int32_t ids[IDS];
    struct err err;

    memcpy(ids, prompt, sizeof(ids));
    ids[c->n - 1] += !c->matches;
    cr_assert(!digest_tokens(ids, c->n, hex, &err) && !index_prefix(ids, c->n, r.key.prefix, &err));
    index_key_set(&r.key, r.key.prefix, hex, c->n);
    index_key_in(&r.key, 1);
    return r;
}

/* Publishes the contexts of a view. */
static struct index make_index(const struct context *c, int view, const int32_t *prompt)
{
    struct index_record record[N];
    char dir[] = "/tmp/evp-unit-XXXXXX";
    int folder = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY) : -1;
    struct index_made made = {
        .generation = 1, .name_space = spaces, .n_name_spaces = 2, .config = configs, .n_configs = 1, .record = record
    };
    struct index ix;
    struct err err;

    for (int i = 0; i < N; i++)
        if (c[i].view == view)
            record[made.n++] = record_of(&c[i], prompt);
    qsort(record, made.n, sizeof(*record), by_order);
    size_t kept = 0; /* equal contexts share a record */
    for (size_t i = 0; i < made.n; i++)
        if (!kept || index_compare(&record[kept - 1], &record[i]) != 0)
            record[kept++] = record[i];
    made.n = kept;
    cr_assert_eq(index_write(&ix, folder, &made, &err), 0, "%s", err.msg);
    cr_assert(unlinkat(folder, "evp-index", 0) == 0 && rmdir(dir) == 0);
    close(folder);
    return ix;
}

/* What index_find() finds: every prompt's length from 0 on. The number of tokens never comes from the record, which is
 * wrong here. */
static void compare(const struct context *c, const struct index_views *views, const int32_t *prompt)
{
    for (int n = 0; n <= IDS; n++) {
        struct index_hit hit = { 0 };
        int longest = 0, view = 0;
        struct err err;
        for (int i = 0; i < N; i++)
            if (c[i].matches && c[i].n <= n && (c[i].n > longest || (c[i].n == longest && c[i].view < view))) {
                longest = c[i].n;
                view = c[i].view;
            }
        int found = index_find(views, &(struct index_prompt){ prompt, (size_t)n }, &hit, &err);
        cr_assert_eq(found, longest > 0, "%d ids: %d, not %d", n, found, longest);
        cr_assert(!found || ((int)hit.record.n_tokens == longest && hit.view == view), "%d ids: %u in %d, not %d in %d",
                  n, hit.record.n_tokens, hit.view, longest, view);
    }
}

Test(index_find, finds_the_longest_in_the_first_view)
{
    struct rng rng = rng_new(3);

    for (int round = 0; round < 4; round++) {
        struct context c[N];
        struct index ix[VIEWS];
        struct index_view view[VIEWS + 1];
        int32_t prompt[IDS];
        for (int i = 0; i < IDS; i++)
            prompt[i] = (int32_t)rng_below(&rng, 1000);
        for (int i = 0; i < N; i++) /* crowded in one chunk, around its borders, anywhere */
            c[i] = (struct context){ round == 0   ? 257 + (int)rng_below(&rng, 20)
                                     : round == 1 ? 250 + (int)rng_below(&rng, 12)
                                                  : 1 + (int)rng_below(&rng, IDS),
                                     (int)rng_below(&rng, VIEWS), rng_below(&rng, 10) == 0 };
        for (int v = 0; v < VIEWS; v++) {
            ix[v] = make_index(c, v, prompt);
            view[v] = (struct index_view){ &ix[v], index_name_space(&ix[v], "model") };
        }
        view[VIEWS] = (struct index_view){ &ix[0], index_name_space(&ix[0], "other") };
        compare(c, &(struct index_views){ view, VIEWS + 1 }, prompt);
        view[0].name_space = view[1].name_space = view[2].name_space = -1;
        cr_assert_eq(index_find(&(struct index_views){ view, VIEWS + 1 }, &(struct index_prompt){ prompt, IDS },
                                &(struct index_hit){ 0 }, &(struct err){ 0 }),
                     0);
        for (int v = 0; v < VIEWS; v++)
            index_close(&ix[v]);
    }
}

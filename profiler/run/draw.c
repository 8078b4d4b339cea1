/* draw.c - sorts the contexts by key and takes the first. */
#include "profiler/run/draw.h"

#include "base/buf.h"
#include "base/digest.h"
#include "base/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct drawn {
    uint64_t key;
    int context;
};

/* The number of contexts that a text asks for; 0: malformed. */
static int64_t wanted_contexts(const char *text, int n_contexts)
{
    int64_t n = 0;
    double share;

    if (!*text || text[strlen(text) - 1] != '%')
        return parse_int(text, &n) && n > 0 ? n : 0;
    return parse_fraction(text, &share) && share > 0 && share <= 1 ? (int64_t)ceil(share * n_contexts) : 0;
}

static int by_key(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;

    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->context - y->context;
}

/* Lists the contexts with questions, each once, with their keys. Returns their number; -1 without memory. */
static int list_contexts(const struct draw *d, struct drawn *to, bool *seen)
{
    struct buf key = { 0 };
    int n = 0;

    for (int q = 0; q < d->questions->n; q++) {
        const char *id = d->questions->at[q].context;
        int c = map_find(&d->contexts->ids, id, strlen(id));
        if (c < 0 || seen[c])
            continue;
        seen[c] = true;
        buf_clear(&key);
        buf_printf(&key, "%d %s", d->seed, id);
        to[n++] = (struct drawn){ digest_xxh3(buf_str(&key), key.n), c };
    }
    bool failed = buf_failed(&key);
    buf_release(&key);
    return failed ? -1 : n;
}

int draw_contexts(bool **sampled, const struct draw *d, struct err *err)
{
    int64_t wanted = wanted_contexts(d->size, d->contexts->n);
    size_t all = (size_t)d->contexts->n;

    *sampled = NULL;
    if (!wanted)
        return err_set(err, ERR_USAGE, "'%s' is neither a number of contexts nor a share like '12%%'", d->size);
    struct drawn *drawn = calloc(all + 1, sizeof(*drawn));
    bool *taken = calloc(all + 1, sizeof(*taken));
    int n = drawn && taken ? list_contexts(d, drawn, taken) : -1;
    if (n > 0)
        qsort(drawn, (size_t)n, sizeof(*drawn), by_key);
    for (int i = 0; i < n; i++)
        taken[drawn[i].context] = i < wanted;
    free(drawn);
    if (n < 0)
        free(taken);
    else
        *sampled = taken;
    return n < 0 ? err_nomem(err) : 0;
}

/* draw.c - sorts the contexts by key and takes the first. */
#include "profiler/run/draw.h"

#include "base/buf.h"
#include "base/digest.h"
#include "base/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct drawn {
    bool asked; // it has questions
    uint64_t key;
    int context;
};

/* Sets the size of the sample, of at most `n_asked` contexts, or its time. false: the text is malformed. */
static bool read_size(struct context_sample *s, const char *text, int n_contexts, int n_asked)
{
    int64_t n = 0;
    double share = 0;
    const char *last = text + strlen(text) - (*text != 0);

    s->n = n_asked;
    if (*last >= 'a' && *last <= 'z')
        return parse_seconds(text, &s->seconds) && s->seconds > 0;
    if (*last != '%' ? !parse_int(text, &n) : !parse_fraction(text, &share) || !(share <= 1))
        return false;
    double wanted = *last == '%' ? ceil(share * n_contexts) : (double)n;
    if (wanted < n_asked)
        s->n = (int)wanted;
    return wanted > 0;
}

static int by_key(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;

    if (x->asked != y->asked)
        return x->asked ? -1 : 1;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->context - y->context;
}

/* Gives each context its key, and says which have questions. Returns the number of those; -1 without memory. */
static int make_keys(const struct draw *d, struct drawn *to)
{
    struct buf key = { 0 };
    int n = 0;

    for (int c = 0; c < d->contexts->n; c++) {
        buf_clear(&key);
        buf_printf(&key, "%d %s", d->seed, d->contexts->at[c].id);
        to[c] = (struct drawn){ false, buf_failed(&key) ? 0 : digest_xxh3(buf_str(&key), key.n), c };
    }
    for (int q = 0; q < d->questions->n; q++) {
        const char *id = d->questions->at[q].context;
        int c = map_find(&d->contexts->ids, id, strlen(id));
        n += c >= 0 && !to[c].asked;
        if (c >= 0)
            to[c].asked = true;
    }
    bool failed = buf_failed(&key);
    buf_release(&key);
    return failed ? -1 : n;
}

int sample_draw(struct context_sample *s, const struct draw *d, struct err *err)
{
    size_t all = (size_t)d->contexts->n;
    struct drawn *drawn = calloc(all + 1, sizeof(*drawn));

    *s = (struct context_sample){ .order = calloc(all + 1, sizeof(*s->order)) };
    int n = drawn && s->order ? make_keys(d, drawn) : -1, code = n < 0 ? err_nomem(err) : 0;
    if (!code && !read_size(s, d->size, d->contexts->n, n))
        code = err_set(err, ERR_USAGE, "'%s' is neither a number of contexts, a share like '12%%' nor a time like '3h'",
                       d->size);
    if (!code)
        qsort(drawn, all, sizeof(*drawn), by_key);
    for (size_t i = 0; i < all && !code; i++)
        s->order[i] = drawn[i].context;
    free(drawn);
    if (code)
        sample_release(s);
    return code;
}

void sample_release(struct context_sample *s)
{
    free(s->order);
    *s = (struct context_sample){ 0 };
}

/* repeats.c - a suffix array by induced sorting, then one walk over the text that measures the common prefixes of each
 * suffix and its neighbours in the array.
 *
 * Induced sorting: a suffix is of type S when it is smaller than the next one of the text, else L. An S after an L is a
 * leftmost S (LMS). The LMS substrings between them get names, in order. The names are a shorter text; its suffixes, in
 * turn sorted the same way if two names are equal, give the order of the LMS suffixes, which induces the order of all
 * others.
 */
#include "qgen/repeats.h"

#include <stdlib.h>
#include <string.h>

enum { BYTE_SYMBOLS = 256 };

/* A text of symbols to sort: bytes, or on deeper levels names of LMS substrings. Its last symbol is 0 and occurs once.
 */
struct level {
    const unsigned char *bytes; // NULL: names
    const int32_t *names;
    int32_t n, n_symbols;
    int32_t *order;       // [n] the suffix array
    unsigned char *small; // (n) bits: is the suffix of type S
    int32_t *bucket;      // [n_symbols]
};

static int32_t symbol(const struct level *l, int32_t i)
{
    return l->bytes ? l->bytes[i] : l->names[i];
}

static bool is_small(const struct level *l, int32_t i)
{
    return l->small[i / 8] >> (i % 8) & 1;
}

static bool is_leftmost(const struct level *l, int32_t i)
{
    return i > 0 && is_small(l, i) && !is_small(l, i - 1);
}

static void find_types(struct level *l)
{
    for (int32_t i = l->n - 1, smaller = 1; i >= 0; i--) {
        if (i + 1 < l->n && symbol(l, i) != symbol(l, i + 1))
            smaller = symbol(l, i) < symbol(l, i + 1);
        if (smaller)
            l->small[i / 8] = (unsigned char)(l->small[i / 8] | 1 << (i % 8));
    }
}

/* bucket[c]: the beginning, or the end, of the suffixes in the order that begin with c. */
enum edge { EDGE_BEGIN, EDGE_END };

static void find_buckets(struct level *l, enum edge edge)
{
    int32_t sum = 0;

    memset(l->bucket, 0, (size_t)l->n_symbols * sizeof(*l->bucket));
    for (int32_t i = 0; i < l->n; i++)
        l->bucket[symbol(l, i)]++;
    for (int32_t c = 0; c < l->n_symbols; c++) {
        int32_t n = l->bucket[c];
        sum += n;
        l->bucket[c] = edge == EDGE_END ? sum : sum - n;
    }
}

/* From the order of the LMS suffixes to the order of all. */
static void induce(struct level *l)
{
    find_buckets(l, EDGE_BEGIN);
    for (int32_t r = 0; r < l->n; r++) {
        int32_t i = l->order[r] - 1;
        if (i >= 0 && !is_small(l, i))
            l->order[l->bucket[symbol(l, i)]++] = i;
    }
    find_buckets(l, EDGE_END);
    for (int32_t r = l->n - 1; r >= 0; r--) {
        int32_t i = l->order[r] - 1;
        if (i >= 0 && is_small(l, i))
            l->order[--l->bucket[symbol(l, i)]] = i;
    }
}

static void clear(struct level *l, int32_t from)
{
    for (int32_t r = from; r < l->n; r++)
        l->order[r] = -1;
}

/* Are the LMS substrings at a and b equal? */
static bool same_substring(const struct level *l, int32_t a, int32_t b)
{
    for (int32_t d = 0;; d++) {
        if (a + d >= l->n || b + d >= l->n || symbol(l, a + d) != symbol(l, b + d) ||
            is_small(l, a + d) != is_small(l, b + d))
            return false;
        if (d > 0 && (is_leftmost(l, a + d) || is_leftmost(l, b + d)))
            return is_leftmost(l, a + d) && is_leftmost(l, b + d);
    }
}

/* Sorts the LMS substrings, and leaves their names, in the order of the text, at the end of `order`. Returns the number
 * of distinct names; *n_leftmost: of LMS substrings. */
static int32_t name_substrings(struct level *l, int32_t *n_leftmost)
{
    int32_t n = 0, n_names = 0, before = -1;

    clear(l, 0);
    find_buckets(l, EDGE_END);
    for (int32_t i = 1; i < l->n; i++)
        if (is_leftmost(l, i))
            l->order[--l->bucket[symbol(l, i)]] = i;
    induce(l);
    for (int32_t r = 0; r < l->n; r++)
        if (is_leftmost(l, l->order[r]))
            l->order[n++] = l->order[r];
    clear(l, n);
    for (int32_t r = 0; r < n; r++) { // no two LMS suffixes are neighbours: half the positions are enough
        int32_t i = l->order[r];
        n_names += before < 0 || !same_substring(l, before, i);
        before = i;
        l->order[n + i / 2] = n_names - 1;
    }
    for (int32_t r = l->n - 1, to = l->n - 1; r >= n; r--)
        if (l->order[r] >= 0)
            l->order[to--] = l->order[r];
    *n_leftmost = n;
    return n_names;
}

static int sort_level(struct level *l, struct err *err);

/* Puts the LMS suffixes, in their order, at the beginning of `order`. */
static int sort_leftmost(struct level *l, int32_t n, int32_t n_names, struct err *err)
{
    int32_t *names = l->order + l->n - n;
    struct level shorter = { .names = names, .n = n, .n_symbols = n_names, .order = l->order };

    if (n_names < n)
        return sort_level(&shorter, err);
    for (int32_t i = 0; i < n; i++)
        l->order[names[i]] = i;
    return 0;
}

static void spread_leftmost(struct level *l, int32_t n)
{
    int32_t *at = l->order + l->n - n;

    for (int32_t i = 1, k = 0; i < l->n; i++)
        if (is_leftmost(l, i))
            at[k++] = i;
    for (int32_t r = 0; r < n; r++)
        l->order[r] = at[l->order[r]];
    clear(l, n);
    find_buckets(l, EDGE_END);
    for (int32_t r = n - 1; r >= 0; r--) {
        int32_t i = l->order[r];
        l->order[r] = -1;
        l->order[--l->bucket[symbol(l, i)]] = i;
    }
}

static int sort_level(struct level *l, struct err *err)
{
    int32_t n_leftmost = 0;
    int code = 0;

    l->small = calloc((size_t)l->n / 8 + 1, 1);
    l->bucket = calloc((size_t)l->n_symbols, sizeof(*l->bucket));
    if (l->small && l->bucket) {
        find_types(l);
        int32_t n_names = name_substrings(l, &n_leftmost);
        code = sort_leftmost(l, n_leftmost, n_names, err);
    } else {
        code = err_nomem(err);
    }
    if (!code) {
        spread_leftmost(l, n_leftmost);
        induce(l);
    }
    free(l->small);
    free(l->bucket);
    return code;
}

/* The common prefix of each suffix and the one before it in the order, computed in the order of the text: from one
 * suffix to the next it shrinks by at most one. before[i]: the suffix before suffix i; n: none. */
static void measure(struct repeats *r, const char *text, int32_t n, const int32_t *before)
{
    for (int32_t i = 0, shared = 0; i < n; i++) {
        int32_t other = before[i];
        if (other == n) {
            shared = 0;
            continue;
        }
        while (text[i + shared] && text[i + shared] == text[other + shared])
            shared++;
        uint16_t longest = (uint16_t)(shared < REPEATS_MAX ? shared : REPEATS_MAX);
        r->longest[i] = r->longest[i] > longest ? r->longest[i] : longest;
        r->longest[other] = r->longest[other] > longest ? r->longest[other] : longest;
        shared -= shared > 0;
    }
}

int repeats_find(struct repeats *r, const char *text, size_t n, struct err *err)
{
    struct level l = { .bytes = (const unsigned char *)text, .n = (int32_t)n + 1, .n_symbols = BYTE_SYMBOLS };
    int32_t *before = NULL;

    *r = (struct repeats){ 0 };
    if (n >= INT32_MAX - 1)
        return err_set(err, ERR_FAIL, "a text of %zu bytes is too long", n);
    l.order = malloc((n + 1) * sizeof(*l.order));
    int code = l.order ? sort_level(&l, err) : err_nomem(err);
    if (!code) {
        before = malloc((n + 1) * sizeof(*before));
        r->longest = calloc(n + 1, sizeof(*r->longest));
        code = before && r->longest ? 0 : err_nomem(err);
    }
    for (size_t k = 1; k <= n && !code; k++) // order[0] is the empty suffix
        before[l.order[k]] = l.order[k - 1];
    free(l.order);
    if (!code)
        measure(r, text, (int32_t)n, before);
    free(before);
    if (code)
        repeats_release(r);
    return code;
}

void repeats_release(struct repeats *r)
{
    free(r->longest);
    *r = (struct repeats){ 0 };
}

bool repeats_none(const struct repeats *r, size_t at, size_t n)
{
    return r->longest[at] < n;
}

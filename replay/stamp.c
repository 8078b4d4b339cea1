/* stamp.c - heads, what differs in them, and where they agree again. */
#include "replay/stamp.h"

#include <stdlib.h>
#include <string.h>

enum {
    WINDOW = 64,
    SAME = 256, // bytes that agree: the end of a difference
    MARK = 48,  // bytes by which a prompt finds the end again
    GROUPS = 2048,
    VAIN = 64, // comparisons that a group may cost without a result
};

/* The least hash of all windows of a head, each from the one before (R. Karp and M. Rabin, Efficient randomized
 * pattern-matching algorithms, 1987). */
static uint64_t key_of(const char *text, size_t n)
{
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t hash = 0, out = 1, least = UINT64_MAX;

    for (int i = 0; i < WINDOW; i++)
        out *= factor;
    for (size_t i = 0; i < n; i++) {
        hash = hash * factor + (unsigned char)text[i] + 1;
        if (i >= WINDOW)
            hash -= out * ((unsigned char)text[i - WINDOW] + 1u);
        uint64_t mixed = (hash ^ hash >> 32) * factor;
        if (i + 1 >= WINDOW && mixed < least)
            least = mixed;
    }
    return least;
}

static size_t head_of(size_t n)
{
    return n < STAMP_HEAD ? n : STAMP_HEAD;
}

static size_t common(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t i = 0, n = n_a < n_b ? n_a : n_b;

    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* Where two heads that differ at `from` agree again, the nearest places first: bytes of the head; 0: nowhere. */
static size_t meet(const struct prompt_stamp *s, const char *text, size_t n, size_t from)
{
    for (size_t sum = 1; sum <= 2 * STAMP_MAX; sum++)
        for (size_t i = sum > STAMP_MAX ? sum - STAMP_MAX : 0; i <= sum && i <= STAMP_MAX; i++) {
            size_t a = from + i, b = from + sum - i;
            if (a + SAME <= s->n_head && b + SAME <= n && common(s->head + a, SAME, text + b, SAME) == SAME)
                return a;
        }
    return 0;
}

static bool is_stamp(const struct prompt_stamp *s)
{
    return s->end > s->begin && s->end - s->begin <= STAMP_MAX;
}

/* The bytes of a prompt in place of what changes; -1: it is not like the others. */
static long cut(const struct prompt_stamp *s, const char *text, size_t n)
{
    if (!is_stamp(s) || common(s->head, s->begin, text, n) < s->begin)
        return -1;
    for (size_t end = s->begin; end <= s->begin + STAMP_MAX && end + MARK <= n; end++)
        if (common(s->head + s->end, MARK, text + end, MARK) == MARK)
            return (long)(end - s->begin);
    return -1;
}

/* Widens what changes by what another head of the group has there. */
static void compare(struct prompt_stamp *s, const char *text, size_t n)
{
    size_t from = common(s->head, s->n_head, text, n);

    if (from == n || from == s->n_head || s->n_vain >= VAIN || cut(s, text, n) >= 0)
        return;
    size_t end = meet(s, text, n, from);
    if (end == 0) {
        s->n_vain++;
        return;
    }
    s->begin = from < s->begin ? from : s->begin;
    s->end = end > s->end ? end : s->end;
}

static struct prompt_stamp *group_of(const struct stamps *s, const char *text, size_t n)
{
    uint64_t key = key_of(text, head_of(n));
    int at = map_find(&s->keys, (const char *)&key, sizeof(key));

    return at < 0 ? NULL : &s->at[at];
}

static bool add_group(struct stamps *s, const char *text, size_t n)
{
    uint64_t key = key_of(text, n);

    if (!s->at && !(s->at = calloc(GROUPS, sizeof(*s->at))))
        return false;
    int at = map_add(&s->keys, (const char *)&key, sizeof(key), NULL);
    char *head = at < 0 ? NULL : malloc(n);
    if (!head)
        return false;
    memcpy(head, text, n);
    s->at[at] = (struct prompt_stamp){ head, n, n, 0, 0, 0 };
    return true;
}

bool stamps_take(struct stamps *s, const char *text, size_t n)
{
    struct prompt_stamp *group = group_of(s, text, n);

    if (group)
        compare(group, text, head_of(n));
    else if (s->keys.n < GROUPS && n >= 2 * SAME)
        return add_group(s, text, head_of(n));
    return true;
}

struct prompt_stamp *stamps_cut(const struct stamps *s, const char *text, size_t n, size_t *n_cut)
{
    struct prompt_stamp *group = s->keys.n ? group_of(s, text, n) : NULL;

    long bytes = group ? cut(group, text, n) : -1;

    *n_cut = bytes > 0 ? (size_t)bytes : 0;
    return bytes >= 0 ? group : NULL;
}

bool stamps_any(const struct stamps *s)
{
    for (int i = 0; i < s->keys.n; i++)
        if (is_stamp(&s->at[i]))
            return true;
    return false;
}

void stamps_release(struct stamps *s)
{
    for (int i = 0; i < s->keys.n; i++)
        free(s->at[i].head);
    free(s->at);
    map_release(&s->keys);
    *s = (struct stamps){ 0 };
}

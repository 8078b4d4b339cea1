/* Caches of whole objects against a list that is searched from end to end, on random requests for objects of all
 * sizes. */
#include "replay/object_cache.h"

#include "base/rng.h"

#include <criterion/criterion.h>
#include <string.h>

enum { OBJECTS = 30, REQUESTS = 400, TRACES = 300, SIZES = 9 };

/* What the list knows of an object. */
struct entry {
    int32_t object;
    int uses;
    int64_t used, came, next;
    double worth; // gdsf
};

struct list {
    struct entry at[OBJECTS];
    int n;
    int64_t held;
    double clock;
};

static double priority_of(int32_t object)
{
    return object * 7 % 5; // of each six objects
}

/* Who leaves: the smallest of each policy's own measure; of equals the one used first. */
static int who_leaves(const struct list *l, const char *policy)
{
    int worst = 0;

    for (int i = 1; i < l->n; i++) {
        const struct entry *a = &l->at[i], *b = &l->at[worst];
        double x = strcmp(policy, "fifo") == 0       ? (double)(a->came - b->came)
                   : strcmp(policy, "lfu") == 0      ? a->uses - b->uses
                   : strcmp(policy, "priority") == 0 ? priority_of(a->object) - priority_of(b->object)
                   : strcmp(policy, "gdsf") == 0     ? a->worth - b->worth
                   : strcmp(policy, "belady") == 0   ? (double)(b->next - a->next)
                                                     : (double)(a->used - b->used);
        if (x < 0 || (x == 0 && a->used < b->used))
            worst = i;
    }
    return worst;
}

static int find(const struct list *l, int32_t object)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i].object == object)
            return i;
    return -1;
}

/* Uses an object; returns whether it was there. */
static bool use(struct list *l, const char *policy, const struct entry *e, const int64_t *bytes, int64_t capacity)
{
    int at = find(l, e->object);
    bool was = at >= 0;

    if (!was && bytes[e->object] > capacity)
        return false;
    while (!was && l->held + bytes[e->object] > capacity) {
        int gone = who_leaves(l, policy);
        l->clock = l->at[gone].worth;
        l->held -= bytes[l->at[gone].object];
        l->at[gone] = l->at[--l->n];
    }
    if (!was) {
        at = l->n++;
        l->at[at] = *e;
        l->held += bytes[e->object];
    }
    l->at[at].uses++;
    l->at[at].used = e->used;
    l->at[at].next = e->next;
    l->at[at].worth = l->clock + (double)l->at[at].uses / (double)bytes[e->object];
    return was;
}

static void compare(const char *policy, uint64_t seed)
{
    struct rng r = rng_new(seed);
    int64_t bytes[OBJECTS], next[OBJECTS], following[REQUESTS], capacity = 1 + (int64_t)rng_below(&r, 60), freed;
    int32_t object[REQUESTS];
    struct list list = { .n = 0 };
    double priority[OBJECTS];
    struct err err;

    for (int i = 0; i < OBJECTS; i++) {
        bytes[i] = 1 + (int64_t)rng_below(&r, SIZES);
        next[i] = REQUESTS;
        priority[i] = priority_of(i);
    }
    for (int i = 0; i < REQUESTS; i++)
        object[i] = (int32_t)(rng_below(&r, OBJECTS) * rng_below(&r, OBJECTS) / OBJECTS);
    for (int i = REQUESTS - 1; i >= 0; i--) {
        following[i] = next[object[i]];
        next[object[i]] = i;
    }
    struct object_cache c = { .kind = object_cache_find(policy),
                              .n = OBJECTS,
                              .bytes = bytes,
                              .capacity = capacity,
                              .next = next,
                              .priority = priority };
    cr_assert_eq(object_cache_open(&c, &err), 0);
    for (int i = 0; i < REQUESTS; i++) {
        int32_t o = object[i];
        next[o] = following[i];
        bool was = object_cache_has(&c, o);
        if (was)
            object_cache_hit(&c, o);
        while (!was && bytes[o] <= capacity && c.held + bytes[o] > capacity)
            object_cache_evict(&c, o, c.held + bytes[o] - capacity, &freed);
        if (!was && bytes[o] <= capacity)
            object_cache_insert(&c, o, bytes[o]);
        if (rng_below(&r, 20) == 0 && object_cache_has(&c, o)) { /* it goes to another tier */
            object_cache_remove(&c, o);
            object_cache_insert(&c, o, bytes[o]);
            int at = find(&list, o);
            if (at >= 0) {
                list.held -= bytes[o];
                list.at[at] = list.at[--list.n];
            }
            cr_assert_eq(use(&list, policy, &(struct entry){ o, 0, i, i, following[i], 0 }, bytes, capacity), false);
        } else {
            struct entry e = { o, 0, i, i, following[i], 0 };
            cr_assert_eq(use(&list, policy, &e, bytes, capacity), was, "%s, request %d of trace %d", policy, i,
                         (int)seed);
        }
        cr_assert_eq(c.held, list.held);
        for (int k = 0; k < OBJECTS; k++)
            cr_assert_eq(object_cache_has(&c, k), find(&list, k) >= 0);
    }
    object_cache_close(&c);
}

Test(object_cache, equals_a_list)
{
    static const char *const policy[] = { "fifo", "lru", "lfu", "gdsf", "belady", "priority" };

    for (size_t k = 0; k < sizeof(policy) / sizeof(*policy); k++)
        for (int trace = 0; trace < TRACES; trace++)
            compare(policy[k], (uint64_t)trace);
}

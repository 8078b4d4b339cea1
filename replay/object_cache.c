/* object_cache.c - queues as doubly linked lists over the objects' numbers, and a binary heap. */
#include "replay/object_cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NOWHERE, SMALL, MAIN, REMEMBERED, REMEMBERED_MAIN }; // the queues of s3fifo, arc and slru

/* Of those who are remembered nothing is held. */
static int64_t bytes_in(const struct object_cache *c, const struct object_cache_queue *q, int32_t object)
{
    return q >= &c->queue[REMEMBERED - SMALL] ? c->bytes[object] : c->part[object];
}

/* ---- queues -------------------------------------------------------------------- */

static void push_first(struct object_cache *c, struct object_cache_queue *q, int32_t object)
{
    c->link[object] = (struct object_cache_link){ -1, q->first };
    if (q->first >= 0)
        c->link[q->first].before = object;
    else
        q->last = object;
    q->first = object;
    q->bytes += bytes_in(c, q, object);
}

static void take_out(struct object_cache *c, struct object_cache_queue *q, int32_t object)
{
    const struct object_cache_link l = c->link[object];

    if (l.before >= 0)
        c->link[l.before].after = l.after;
    else
        q->first = l.after;
    if (l.after >= 0)
        c->link[l.after].before = l.before;
    else
        q->last = l.before;
    q->bytes -= bytes_in(c, q, object);
}

static int open_queue(struct object_cache *c, struct err *err)
{
    (void)c, (void)err;
    return 0;
}

static void fifo_hit(struct object_cache *c, int32_t object)
{
    (void)c, (void)object;
}

static void fifo_insert(struct object_cache *c, int32_t object)
{
    push_first(c, &c->queue[0], object);
}

static int32_t fifo_choose(struct object_cache *c, int32_t coming)
{
    (void)coming;
    return c->queue[0].last;
}

static void fifo_remove(struct object_cache *c, int32_t object)
{
    take_out(c, &c->queue[0], object);
}

static void lru_hit(struct object_cache *c, int32_t object)
{
    take_out(c, &c->queue[0], object);
    push_first(c, &c->queue[0], object);
}

/* ---- SIEVE ----------------------------------------------------------------------- */

static int open_marks(struct object_cache *c, struct err *err)
{
    c->mark = calloc((size_t)c->n + 1, sizeof(*c->mark));
    return c->mark ? 0 : err_nomem(err);
}

static void sieve_hit(struct object_cache *c, int32_t object)
{
    c->mark[object] = 1;
}

static void sieve_insert(struct object_cache *c, int32_t object)
{
    c->mark[object] = 0;
    push_first(c, &c->queue[0], object);
}

static void sieve_remove(struct object_cache *c, int32_t object)
{
    if (c->hand == object)
        c->hand = c->link[object].before;
    take_out(c, &c->queue[0], object);
}

static int32_t sieve_choose(struct object_cache *c, int32_t coming)
{
    int32_t object = c->hand >= 0 ? c->hand : c->queue[0].last;

    (void)coming;
    while (c->mark[object]) {
        c->mark[object] = 0;
        object = c->link[object].before >= 0 ? c->link[object].before : c->queue[0].last;
    }
    return c->hand = object;
}

/* ---- S3-FIFO --------------------------------------------------------------------- */

enum { USES_TO_MAIN = 2, USES_MAX = 3 };

static struct object_cache_queue *queue_of(struct object_cache *c, int where)
{
    return &c->queue[where - SMALL];
}

static void go(struct object_cache *c, int32_t object, int where)
{
    if (c->mark[object] != NOWHERE)
        take_out(c, queue_of(c, c->mark[object]), object);
    c->mark[object] = (uint8_t)where;
    if (where != NOWHERE)
        push_first(c, queue_of(c, where), object);
}

static int s3fifo_open(struct object_cache *c, struct err *err)
{
    c->uses = calloc((size_t)c->n + 1, sizeof(*c->uses));
    return c->uses ? open_marks(c, err) : err_nomem(err);
}

static void s3fifo_hit(struct object_cache *c, int32_t object)
{
    c->uses[object]++;
}

static void s3fifo_insert(struct object_cache *c, int32_t object)
{
    bool known = c->known == object || c->mark[object] == REMEMBERED;

    go(c, object, known ? MAIN : SMALL);
    c->uses[object] = 0;
    c->known = -1;
}

static void remember(struct object_cache *c, int32_t object)
{
    go(c, object, REMEMBERED);
    while (queue_of(c, REMEMBERED)->bytes > c->capacity - c->capacity / 10)
        go(c, queue_of(c, REMEMBERED)->last, NOWHERE);
}

static int32_t s3fifo_choose(struct object_cache *c, int32_t coming)
{
    const struct object_cache_queue *small = queue_of(c, SMALL), *main_queue = queue_of(c, MAIN);

    if (c->mark[coming] == REMEMBERED) { /* before who leaves is remembered in its place */
        go(c, coming, NOWHERE);
        c->known = coming;
    }
    for (;;) {
        bool from_main = small->last < 0 || main_queue->bytes > c->capacity - c->capacity / 10;
        int32_t object = from_main ? main_queue->last : small->last;
        if (c->uses[object] < (from_main ? 1 : USES_TO_MAIN))
            return object;
        c->uses[object] = from_main ? (c->uses[object] < USES_MAX ? c->uses[object] : USES_MAX) - 1 : 0;
        go(c, object, MAIN);
    }
}

static void s3fifo_evict(struct object_cache *c, int32_t object)
{
    if (c->mark[object] == SMALL)
        remember(c, object);
    else
        go(c, object, NOWHERE);
}

static void marked_remove(struct object_cache *c, int32_t object)
{
    go(c, object, NOWHERE);
}

/* ---- ARC: SMALL was used once of late, MAIN more often ---------------------------- */

/* Who was remembered comes again: its queue should have been larger. */
static void arc_learn(struct object_cache *c, int32_t object)
{
    double once = (double)queue_of(c, REMEMBERED)->bytes, often = (double)queue_of(c, REMEMBERED_MAIN)->bytes;
    double size = (double)c->bytes[object];

    if (c->mark[object] == REMEMBERED)
        c->target = fmin(c->target + fmax(1, often / once) * size, (double)c->capacity);
    else
        c->target = fmax(c->target - fmax(1, once / often) * size, 0);
    c->from_main = c->mark[object] == REMEMBERED_MAIN;
    c->known = object;
    go(c, object, NOWHERE);
}

static void arc_hit(struct object_cache *c, int32_t object)
{
    go(c, object, MAIN);
}

static void arc_insert(struct object_cache *c, int32_t object)
{
    if (c->mark[object] >= REMEMBERED)
        arc_learn(c, object);
    go(c, object, c->known == object ? MAIN : SMALL);
    c->known = -1;
    while (queue_of(c, SMALL)->bytes + queue_of(c, REMEMBERED)->bytes > c->capacity &&
           queue_of(c, REMEMBERED)->last >= 0)
        go(c, queue_of(c, REMEMBERED)->last, NOWHERE);
    while (c->held + queue_of(c, REMEMBERED)->bytes + queue_of(c, REMEMBERED_MAIN)->bytes > 2 * c->capacity &&
           queue_of(c, REMEMBERED_MAIN)->last >= 0)
        go(c, queue_of(c, REMEMBERED_MAIN)->last, NOWHERE);
}

static int32_t arc_choose(struct object_cache *c, int32_t coming)
{
    if (c->mark[coming] >= REMEMBERED)
        arc_learn(c, coming);
    const struct object_cache_queue *once = queue_of(c, SMALL), *often = queue_of(c, MAIN);
    bool above =
        (double)once->bytes > c->target || (c->known == coming && c->from_main && (double)once->bytes >= c->target);
    return often->last < 0 || (above && once->last >= 0) ? once->last : often->last;
}

static void arc_evict(struct object_cache *c, int32_t object)
{
    go(c, object, c->mark[object] == SMALL ? REMEMBERED : REMEMBERED_MAIN);
}

/* ---- segmented LRU ----------------------------------------------------------------- */

static void slru_hit(struct object_cache *c, int32_t object)
{
    go(c, object, MAIN);
    while (queue_of(c, MAIN)->bytes > c->capacity - c->capacity / 5)
        go(c, queue_of(c, MAIN)->last, SMALL);
}

static void slru_insert(struct object_cache *c, int32_t object)
{
    go(c, object, SMALL);
}

static int32_t slru_choose(struct object_cache *c, int32_t coming)
{
    (void)coming;
    return queue_of(c, SMALL)->last >= 0 ? queue_of(c, SMALL)->last : queue_of(c, MAIN)->last;
}

/* ---- the smallest key leaves ------------------------------------------------------ */

static bool leaves_before(const struct object_cache_rank *a, const struct object_cache_rank *b)
{
    return a->key < b->key || (a->key == b->key && a->turn < b->turn);
}

/* link[].before is an object's place in the heap. */
static void set_place(struct object_cache *c, int32_t at, const struct object_cache_rank *rank)
{
    c->heap[at] = *rank;
    c->link[rank->object].before = at;
}

/* Moves a rank from a free place up or down to where it belongs. */
static void settle(struct object_cache *c, int32_t at, struct object_cache_rank rank)
{
    for (int32_t up = (at - 1) / 2; at > 0 && leaves_before(&rank, &c->heap[up]); up = (at - 1) / 2) {
        set_place(c, at, &c->heap[up]);
        at = up;
    }
    for (int32_t child = 2 * at + 1; child < c->n_heap; child = 2 * at + 1) {
        child += child + 1 < c->n_heap && leaves_before(&c->heap[child + 1], &c->heap[child]);
        if (!leaves_before(&c->heap[child], &rank))
            break;
        set_place(c, at, &c->heap[child]);
        at = child;
    }
    set_place(c, at, &rank);
}

static int open_heap(struct object_cache *c, struct err *err)
{
    c->heap = malloc(((size_t)c->n + 1) * sizeof(*c->heap));
    c->uses = calloc((size_t)c->n + 1, sizeof(*c->uses));
    return c->heap && c->uses ? 0 : err_nomem(err);
}

static void heap_put(struct object_cache *c, int32_t object, double key, bool is_new)
{
    const struct object_cache_rank rank = { key, c->turns++, object };

    settle(c, is_new ? c->n_heap++ : c->link[object].before, rank);
}

static void heap_take(struct object_cache *c, int32_t object)
{
    int32_t at = c->link[object].before;
    const struct object_cache_rank last = c->heap[--c->n_heap];

    if (last.object != object)
        settle(c, at, last);
}

static int32_t heap_choose(struct object_cache *c, int32_t coming)
{
    (void)coming;
    return c->heap[0].object;
}

static void heap_evict(struct object_cache *c, int32_t object)
{
    c->clock = c->heap[0].key; // only gdsf looks at it
    heap_take(c, object);
}

static void lfu_hit(struct object_cache *c, int32_t object)
{
    heap_put(c, object, ++c->uses[object], false);
}

static void lfu_insert(struct object_cache *c, int32_t object)
{
    c->uses[object] = 1;
    heap_put(c, object, 1, true);
}

static double gdsf_key(const struct object_cache *c, int32_t object)
{
    return c->clock + (double)c->uses[object] / (double)(c->bytes[object] > 0 ? c->bytes[object] : 1);
}

static void gdsf_hit(struct object_cache *c, int32_t object)
{
    c->uses[object]++;
    heap_put(c, object, gdsf_key(c, object), false);
}

static void gdsf_insert(struct object_cache *c, int32_t object)
{
    c->uses[object] = 1;
    heap_put(c, object, gdsf_key(c, object), true);
}

static void priority_hit(struct object_cache *c, int32_t object)
{
    heap_put(c, object, c->priority[object], false);
}

static void priority_insert(struct object_cache *c, int32_t object)
{
    heap_put(c, object, c->priority[object], true);
}

static void belady_hit(struct object_cache *c, int32_t object)
{
    heap_put(c, object, -(double)c->next[object], false);
}

static void belady_insert(struct object_cache *c, int32_t object)
{
    heap_put(c, object, -(double)c->next[object], true);
}

/* ---- what all have in common ------------------------------------------------------ */

static const struct object_cache_kind kinds[] = {
    { "fifo", open_queue, fifo_hit, fifo_insert, fifo_choose, NULL, fifo_remove, .forward = true },
    { "lru", open_queue, lru_hit, fifo_insert, fifo_choose, NULL, fifo_remove, .renews = true },
    { "sieve", open_marks, sieve_hit, sieve_insert, sieve_choose, NULL, sieve_remove, .forward = true },
    { "s3fifo", s3fifo_open, s3fifo_hit, s3fifo_insert, s3fifo_choose, s3fifo_evict, marked_remove, .forward = true },
    { "arc", open_marks, arc_hit, arc_insert, arc_choose, arc_evict, marked_remove, .renews = false },
    { "slru", open_marks, slru_hit, slru_insert, slru_choose, NULL, marked_remove, .renews = false },
    { "lfu", open_heap, lfu_hit, lfu_insert, heap_choose, heap_evict, heap_take, .renews = false },
    { "gdsf", open_heap, gdsf_hit, gdsf_insert, heap_choose, heap_evict, heap_take, .renews = false },
    { "priority", open_heap, priority_hit, priority_insert, heap_choose, heap_evict, heap_take, .renews = true },
    { "belady", open_heap, belady_hit, belady_insert, heap_choose, heap_evict, heap_take, .renews = true,
      .looks = true },
};

const struct object_cache_kind *object_cache_find(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

int object_cache_open(struct object_cache *c, struct err *err)
{
    c->hand = c->known = -1;
    for (int i = 0; i < 4; i++)
        c->queue[i] = (struct object_cache_queue){ -1, -1, 0 };
    c->part = calloc((size_t)c->n + 1, sizeof(*c->part));
    c->link = calloc((size_t)c->n + 1, sizeof(*c->link));
    if (!c->part || !c->link || c->kind->open(c, err)) {
        object_cache_close(c);
        return err_nomem(err);
    }
    return 0;
}

void object_cache_close(struct object_cache *c)
{
    free(c->part);
    free(c->link);
    free(c->mark);
    free(c->uses);
    free(c->heap);
    *c = (struct object_cache){ 0 };
}

void object_cache_hit(struct object_cache *c, int32_t object)
{
    c->kind->hit(c, object);
}

void object_cache_insert(struct object_cache *c, int32_t object, int64_t bytes)
{
    c->part[object] = bytes;
    c->held += bytes;
    c->kind->insert(c, object);
}

static void leave(struct object_cache *c, int32_t object, void (*take)(struct object_cache *c, int32_t object))
{
    take(c, object);
    c->held -= c->part[object];
    c->part[object] = 0;
}

void object_cache_remove(struct object_cache *c, int32_t object)
{
    leave(c, object, c->kind->remove);
}

int32_t object_cache_evict(struct object_cache *c, int32_t coming, int64_t needed, int64_t *freed)
{
    int32_t object = c->kind->choose(c, coming);
    int64_t held = c->part[object], units = c->unit ? (needed + c->unit - 1) / c->unit * c->unit : held;

    *freed = units < held ? units : held;
    if (*freed == held) {
        leave(c, object, c->kind->evict ? c->kind->evict : c->kind->remove);
        return object;
    }
    c->part[object] -= *freed;
    c->held -= *freed;
    if (c->mark && c->mark[object] != NOWHERE) // of s3fifo, arc and slru
        queue_of(c, c->mark[object])->bytes -= *freed;
    return object;
}

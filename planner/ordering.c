#include "planner/ordering.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

int changes_note(struct changes *c, int context, const struct point *from)
{
    if (c->n == c->room) {
        int room = c->room ? 2 * c->room : FIRST_ROOM;
        struct change *more = realloc(c->at, (size_t)room * sizeof(*more));
        if (!more)
            return -1;
        c->at = more;
        c->room = room;
    }
    c->at[c->n] = (struct change){ .context = context, .from = *from };
    return c->n++;
}

static int same_place(const struct point *a, const struct point *b)
{
    return a->tier == b->tier && a->config == b->config && a->bytes == b->bytes;
}

static int add_op(struct changes *c, int context, const struct point *from, const struct point *to)
{
    if (c->n_ops == c->ops_room) {
        int room = c->ops_room ? 2 * c->ops_room : FIRST_ROOM;
        struct incremental_op *more = realloc(c->op, (size_t)room * sizeof(*more));
        if (!more)
            return -1;
        c->op = more;
        c->ops_room = room;
    }
    c->op[c->n_ops++] = (struct incremental_op){
        context, { from->config, from->tier }, { to->config, to->tier }, from->bytes, to->bytes
    };
    return 0;
}

/* Makes one change an operation if it fits or frees; 1: it did, 0: not yet, -1: no memory. */
static int emit(struct changes *c, struct change *change, const struct point *to, int64_t *room)
{
    const struct point *from = &change->from;

    if (to->finite >= 0 && point_added(from, to, to->finite) > room[to->finite])
        return 0;
    if (from->finite >= 0)
        room[from->finite] += from->bytes;
    if (to->finite >= 0)
        room[to->finite] -= to->bytes;
    if (add_op(c, change->context, from, to))
        return -1;
    change->from = *to;
    return 1;
}

/* Whatever fits at the time, one after the other; keeps what is left. Returns whether memory ran out. */
static int emit_fitting(struct changes *c, int64_t *room)
{
    int left = 0, done = 0;

    for (int k = 0; k < c->n; k++) {
        struct change *change = &c->at[k];
        if (same_place(&change->from, &change->to))
            continue;
        done = emit(c, change, &change->to, room);
        if (done < 0)
            return -1;
        if (!done)
            c->at[left++] = *change;
    }
    c->n = left;
    return 0;
}

/* Where a circle of full tiers leaves nothing that fits, a context is dropped and stored again: in the end everything
 * fits. */
int changes_order(struct changes *c, const int64_t *room_before)
{
    int64_t room[PLAN_TIERS];

    memcpy(room, room_before, sizeof(room));
    c->n_ops = 0;
    while (c->n > 0) {
        int before = c->n, done = 0;
        if (emit_fitting(c, room))
            return -1;
        for (int k = 0; c->n == before && k < c->n && !done; k++)
            if (c->at[k].from.finite >= 0)
                done = emit(c, &c->at[k], &point_recomputed, room);
        if (done < 0)
            return -1;
    }
    return 0;
}

void changes_release(struct changes *c)
{
    free(c->at);
    free(c->op);
    *c = (struct changes){ 0 };
}

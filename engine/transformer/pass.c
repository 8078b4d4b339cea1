/* pass.c - the lists of a pass: its tokens, the slots of their keys, and the keys that they attend to.
 *
 * All lists are one block, so that one write takes them to the device. Both copies have the same layout.
 */
#include "engine/transformer/engine_internal.h"

void pass_add(struct pass *p, const struct pass_tokens *t, int from)
{
    for (int i = 0; i < t->n; i++) {
        p->host.ids[p->n + i] = t->ids[i];
        p->host.position[p->n + i] = t->position + i;
        p->host.slot[p->n + i] = t->slot + i;
        p->host.since[p->n + i] = t->slot + i - from;
    }
    p->n_same[p->n_own] = 0;
    p->host.own[p->n_own++] =
        (struct attn_span){ .row = p->n, .n_rows = t->n, .first = from, .n_keys = t->slot + t->n - from };
    p->n += t->n;
}

void pass_share(struct pass *p, int cache, int n, int n_same)
{
    if (p->n_shared == 0 || p->host.shared[p->n_shared - 1].first != cache)
        p->host.shared[p->n_shared++] = (struct attn_span){ .row = p->n - n, .first = cache };
    else
        p->n_same[p->n_own - 1] = n_same;
    p->host.shared[p->n_shared - 1].n_rows += n;
}

void pass_pick(struct pass *p, int n)
{
    for (int i = p->n - n; i < p->n; i++)
        p->host.pick[p->n_picks++] = i;
}

void pass_clear(struct pass *p)
{
    p->n = p->n_own = p->n_shared = p->n_picks = 0;
}

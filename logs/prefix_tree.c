/* prefix_tree.c - keys, the table that finds their nodes, and the choice, which goes from the leaves to the root: a
 * node's children have larger numbers than the node.
 */
#include "logs/prefix_tree.h"

#include "base/array.h"
#include "base/digest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

uint64_t prefix_key(uint64_t before, const char *chunk)
{
    char bytes[sizeof(before) + PREFIX_CHUNK];

    memcpy(bytes, &before, sizeof(before));
    memcpy(bytes + sizeof(before), chunk, PREFIX_CHUNK);
    return digest_xxh3(bytes, sizeof(bytes));
}

/* The slot of a key, or the free slot for it. */
static size_t slot_of(const struct prefix_tree *t, uint64_t key)
{
    size_t mask = t->n_slots - 1, i = (size_t)key & mask;

    while (t->slot[i] >= 0 && t->at[t->slot[i]].key != key)
        i = (i + 1) & mask;
    return i;
}

int32_t prefix_find(const struct prefix_tree *t, uint64_t key)
{
    return t->n_slots ? t->slot[slot_of(t, key)] : -1;
}

/* Makes space for one more node: at most half of the slots are in use. */
static int grow(struct prefix_tree *t, struct err *err)
{
    if (ARRAY_GROW(t, (size_t)t->n + 1))
        return err_nomem(err);
    if ((size_t)t->n * 2 + 2 <= t->n_slots)
        return 0;
    size_t n_slots = t->n_slots ? 2 * t->n_slots : 1024;
    int32_t *slot = malloc(n_slots * sizeof(*slot));
    if (!slot)
        return err_nomem(err);
    free(t->slot);
    t->slot = slot;
    t->n_slots = n_slots;
    memset(slot, 0xff, n_slots * sizeof(*slot));
    for (int i = 0; i < t->n; i++)
        slot[slot_of(t, t->at[i].key)] = i;
    return 0;
}

int prefix_step(struct prefix_tree *t, uint64_t key, int32_t *node, struct err *err)
{
    int32_t parent = *node;

    *node = prefix_find(t, key);
    if (*node >= 0)
        return 0;
    if (grow(t, err))
        return err->code;
    *node = t->n++;
    t->at[*node] =
        (struct prefix_node){ .key = key, .parent = parent, .depth = parent < 0 ? 1 : t->at[parent].depth + 1 };
    t->slot[slot_of(t, key)] = *node;
    return 0;
}

/* The key of a whole text: that of its chunks and its rest, which is not a chunk even if it is as long as one. */
static uint64_t whole_key(uint64_t before, const char *rest, size_t n)
{
    char bytes[sizeof(before) + PREFIX_CHUNK];

    before = ~before;
    memcpy(bytes, &before, sizeof(before));
    memcpy(bytes + sizeof(before), rest, n);
    return digest_xxh3(bytes, sizeof(before) + n);
}

int prefix_add(struct prefix_tree *t, const struct prefix_text *text, struct err *err)
{
    uint64_t key = text->key;
    int32_t node = -1;
    size_t i = 0;

    for (; i + PREFIX_CHUNK < text->n; i += PREFIX_CHUNK) {
        key = prefix_key(key, text->at + i);
        if (prefix_step(t, key, &node, err))
            return err->code;
        t->at[node].uses++;
        t->at[node].talks += i + PREFIX_CHUNK >= text->from;
    }
    if (node < 0)
        return 0;
    if (prefix_step(t, whole_key(key, text->at + i, text->n - i), &node, err))
        return err->code;
    t->at[node].depth = 0;
    t->at[node].uses++;
    t->at[node].talks += text->n > text->from;
    return 0;
}

/* ---- the choice ----------------------------------------------------------- */

struct scored {
    double score;
    int32_t node;
};

static int by_score(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;

    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->node < y->node ? -1 : 1;
}

/* Leaves a mark on the `top` best. */
static int keep_top(const struct prefix_tree *t, const uint32_t *own, int32_t *mark, int top, struct err *err)
{
    struct {
        struct scored *at;
        int n, cap;
    } list = { 0 };

    for (int32_t i = 0; i < t->n; i++) {
        const struct scored s = { (double)own[i] * t->at[i].depth, i };
        if (mark[i] >= 0 && ARRAY_PUSH(&list, s)) {
            free(list.at);
            return err_nomem(err);
        }
    }
    if (list.n > 0)
        qsort(list.at, (size_t)list.n, sizeof(*list.at), by_score);
    for (int i = top; i < list.n; i++)
        mark[list.at[i].node] = -1;
    free(list.at);
    return 0;
}

int prefix_choose(const struct prefix_tree *t, const struct prefix_choice *choice, int32_t *mark, struct err *err)
{
    /* texts of the marked nodes below a node; once it is visited, its other texts; and their conversations */
    uint32_t *taken = calloc((size_t)t->n + 1, sizeof(*taken)), *talks = calloc((size_t)t->n + 1, sizeof(*talks));
    uint32_t *kinds = calloc((size_t)t->n + 1, sizeof(*kinds)); // how many of the other texts are different
    int n = 0, code = taken && talks && kinds ? 0 : err_nomem(err);

    for (int32_t i = t->n; !code && i-- > 0;) {
        const struct prefix_node *node = &t->at[i];
        uint32_t below = taken[i], own = node->uses - below;
        uint32_t talking = node->talks > talks[i] ? node->talks - talks[i] : 0; /* a conversation may go on in both */
        kinds[i] += node->depth == 0;
        bool marked = talking >= choice->min_uses && own >= choice->min_uses && kinds[i] >= 2 &&
                      (size_t)node->depth * PREFIX_CHUNK >= choice->min_bytes;
        mark[i] = marked ? 0 : -1;
        taken[i] = own;
        if (node->parent < 0)
            continue;
        taken[node->parent] += marked ? node->uses : below;
        talks[node->parent] += marked ? node->talks : talks[i];
        kinds[node->parent] += marked ? 0 : kinds[i];
    }
    if (!code && choice->top > 0)
        code = keep_top(t, taken, mark, choice->top, err);
    for (int32_t i = 0; !code && i < t->n; i++)
        if (mark[i] >= 0)
            mark[i] = n++;
    free(taken);
    free(talks);
    free(kinds);
    return code ? code : n;
}

void prefix_tree_release(struct prefix_tree *t)
{
    free(t->at);
    free(t->slot);
    *t = (struct prefix_tree){ 0 };
}

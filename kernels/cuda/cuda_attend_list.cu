/* cuda_attend_list.cu - the lists of work of attention: what each block does, made on the host.
 *
 * A list has an item per piece of a tile, so a grid has no block without work, and an item per MERGE_ROWS rows whose
 * pieces are merged. Rows with one piece have no state, the others one per piece. If all states exceed the scratch, the
 * list is cut into turns, each with all pieces of its tiles.
 *
 * Within a turn the items with the most keys come first, so that no long one begins when the others end. Items with
 * the same number of keys keep their order: by pair, then piece, then tile, so tiles that read the same keys run
 * together. Rows do not count: a tile takes as long with few rows as with all.
 *
 * The last list of each kind of job stays on the device. A job with its number and, in the layer at hand, the same
 * numbers of keys uses it again.
 */
#include "kernels/cuda/cuda_attend_internal.h"

#include <stdlib.h>
#include <string.h>

enum { COST_KEYS = 64 }; // that a tile goes through at a time

/* What a list is made of. */
struct making {
    const struct attn_job *job;
    int group, tile_rows, most_pieces;
    size_t most_states; // of a turn
    struct attend_list *list;
    size_t states; // of the turn so far
    int first;     // item of the turn
};

/* ---- memory ----------------------------------------------------------------- */

static int pieces_up(int n, int each)
{
    return (n + each - 1) / each;
}

/* Upper bounds of a list's items and merges. */
static void bounds(const struct making *m, int *items, int *merges)
{
    const struct attn_job *job = m->job;

    *items = *merges = 0;
    for (int pair = 0; pair < m->list->n_pairs; pair++) {
        const struct attn_span &span = job->spans.host[pair / job->n_kv_heads];
        int rows = span.n_rows * m->group, pieces = attend_n_pieces(*job, span, m->list->n_keys[pair], m->most_pieces);
        *items += pieces_up(rows, m->tile_rows) * pieces;
        *merges += pieces > 1 ? pieces_up(rows, MERGE_ROWS) : 0;
    }
}

static bool grow(void **at, size_t *bytes, size_t want)
{
    void *more = want > *bytes || !*at ? realloc(*at, want ? want : 1) : *at;

    if (!more)
        return false;
    *bytes = want > *bytes ? want : *bytes;
    *at = more;
    return true;
}

/* Space on the host: each turn has an item at least, and items are sorted from one half to the other. */
static bool make_space(struct attend_list *l, int items, int merges)
{
    return grow((void **)&l->item, &l->item_bytes, 2 * (size_t)items * sizeof(*l->item)) &&
           grow((void **)&l->cost, &l->cost_bytes, (size_t)items * sizeof(*l->cost)) &&
           grow((void **)&l->turn, &l->turn_bytes, (size_t)items * sizeof(*l->turn)) &&
           grow((void **)&l->merge, &l->merge_bytes, (size_t)merges * sizeof(*l->merge));
}

/* ---- items ------------------------------------------------------------------ */

/* Keys of the tile's last row, which sees the most. */
static int tile_keys(const struct making *m, int pair, int first)
{
    const struct attn_job *job = m->job;
    const struct attn_span &span = job->spans.host[pair / job->n_kv_heads];
    int end = first + m->tile_rows, rows = span.n_rows * m->group, n_keys = m->list->n_keys[pair];

    if (job->kind != ATTN_TEXT && job->kind != ATTN_OWN)
        return n_keys;
    int seen = span.n_keys - span.n_rows + ((end < rows ? end : rows) - 1) / m->group + 1;
    return seen < n_keys ? seen : n_keys;
}

/* Adds all pieces of a pair's rows first .. end - 1. A piece whose keys a tile does not see is left out, but the first:
 * it writes the results of rows without keys. */
static void add_rows(struct making *m, int pair, int first, int end)
{
    struct attend_list *l = m->list;
    const struct attn_span &span = m->job->spans.host[pair / m->job->n_kv_heads];
    int keys = attend_piece_keys(*m->job, span, l->n_keys[pair], m->most_pieces),
        n = attend_n_pieces(*m->job, span, l->n_keys[pair], m->most_pieces);

    for (int piece = 0; piece < n; piece++)
        for (int tile = first; tile < end; tile += m->tile_rows) {
            int seen = tile_keys(m, pair, tile) - piece * keys;
            size_t state = m->states + (size_t)(tile - first) * (size_t)n + (size_t)piece;
            if (seen <= 0 && piece > 0)
                continue;
            l->cost[l->n_items] = seen > 0 ? pieces_up(seen < keys ? seen : keys, COST_KEYS) : 0;
            l->item[l->n_items++] = { pair, tile, n > 1 ? (int)state : -1, (int16_t)piece, (int16_t)n };
        }
    if (n == 1)
        return;
    for (int row = first; row < end; row += MERGE_ROWS)
        l->merge[l->n_merges++] = { pair, row, (int)(m->states + (size_t)(row - first) * (size_t)n), 0, (int16_t)n };
    m->states += (size_t)(end - first) * (size_t)n;
}

/* Sorts n items, the most expensive first, equals in their order, by counting. False: no memory. */
static bool sort_items(struct attend_item *item, struct attend_item *space, const int *cost, int n)
{
    int most = 0;

    for (int i = 0; i < n; i++)
        most = cost[i] > most ? cost[i] : most;
    int *at = (int *)calloc((size_t)most + 2, sizeof(*at)); // at[most - cost + 1]: items of that cost
    if (!at)
        return false;
    for (int i = 0; i < n; i++)
        at[most - cost[i] + 1]++;
    for (int i = 0; i <= most; i++)
        at[i + 1] += at[i];
    for (int i = 0; i < n; i++)
        space[at[most - cost[i]]++] = item[i];
    memcpy(item, space, (size_t)n * sizeof(*item));
    free(at);
    return true;
}

static bool end_turn(struct making *m)
{
    struct attend_list *l = m->list;
    int first = m->first, first_merge = l->n_turns > 0 ? l->turn[l->n_turns - 1].end_merge : 0;

    if (l->n_items == first)
        return true;
    l->turn[l->n_turns++] = { first, l->n_items, first_merge, l->n_merges };
    l->n_states = m->states > l->n_states ? m->states : l->n_states;
    m->states = 0;
    m->first = l->n_items;
    return sort_items(l->item + first, l->item + l->item_bytes / sizeof(*l->item) / 2, l->cost + first,
                      l->n_items - first);
}

/* The end of the pair's rows from `first` on, of `pieces` pieces, whose tiles still fit in the turn; first: none
 * does. */
static int fitting(const struct making *m, int first, int rows, int pieces)
{
    size_t left = m->most_states > m->states ? m->most_states - m->states : 0, some = left / (size_t)pieces;

    if (pieces == 1 || (size_t)(rows - first) <= some)
        return rows;
    int tiles = (int)(some / (size_t)m->tile_rows);
    if (tiles == 0 && m->states == 0)
        tiles = 1; // the scratch has space for a tile
    int end = first + tiles * m->tile_rows;
    return end < rows ? end : rows;
}

static bool fill(struct making *m)
{
    const struct attn_job *job = m->job;

    for (int pair = 0; pair < m->list->n_pairs; pair++) {
        const struct attn_span &span = job->spans.host[pair / job->n_kv_heads];
        int rows = span.n_rows * m->group, pieces = attend_n_pieces(*job, span, m->list->n_keys[pair], m->most_pieces);
        for (int first = 0, end; first < rows; first = end) {
            end = fitting(m, first, rows, pieces);
            if (end > first)
                add_rows(m, pair, first, end);
            if (end < rows && !end_turn(m))
                return false;
        }
    }
    return end_turn(m);
}

/* ---- the list of a job -------------------------------------------------------- */

/* Sets the numbers of keys of all pairs; *same: they were these before. False: no memory. */
static bool take_keys(struct attend_list *l, const struct attn_job *job, bool *same)
{
    int n = job->spans.n * job->n_kv_heads;

    *same = n == l->n_pairs;
    if (!grow((void **)&l->n_keys, &l->key_bytes, (size_t)n * sizeof(*l->n_keys)))
        return false;
    for (int pair = 0; pair < n; pair++) {
        const struct attn_span &span = job->spans.host[pair / job->n_kv_heads];
        int keys = span.n_keys;
        if (job->kind == ATTN_SHARED)
            keys = job->table.host[attend_entry(*job, span, pair % job->n_kv_heads)].n;
        *same = *same && l->n_keys[pair] == keys;
        l->n_keys[pair] = keys;
    }
    l->n_pairs = n;
    return true;
}

/* Brings the list to the device. */
static bool send(struct cuda *c, struct attend_list *l)
{
    size_t items = (size_t)l->n_items * sizeof(*l->item), merges = (size_t)l->n_merges * sizeof(*l->merge);

    if (items + merges > l->device_bytes) {
        size_t want = items + merges > c->list_planned ? items + merges : c->list_planned;
        cuda_ok(c, cudaFree(l->device), "freeing a list of attention"); // waits for the kernels that use it
        l->device_bytes = 0;
        l->device = NULL;
        if (!cuda_ok(c, cudaMalloc((void **)&l->device, want), "allocating a list of attention"))
            return false;
        l->device_bytes = want;
    }
    cuda_write(&c->base, l->device, l->item, items);
    cuda_write(&c->base, l->device + l->n_items, l->merge, merges);
    return !cuda_failed(c);
}

static bool make(const struct cuda *c, struct attend_list *l, const struct attn_job *job, int tile_rows,
                 size_t most_states)
{
    struct making m = { job, job->n_heads / job->n_kv_heads, tile_rows, c->most_pieces, most_states, l, 0, 0 };
    int items, merges;

    l->n_items = l->n_merges = l->n_turns = 0;
    l->n_states = 0;
    l->n_made++;
    bounds(&m, &items, &merges);
    return make_space(l, items, merges) && fill(&m);
}

const struct attend_list *cuda_attend_list(struct cuda *c, const struct attn_job *job, int tile_rows,
                                           size_t most_states)
{
    struct attend_list *l = &c->lists[job->kind][job->window > 0];
    bool same, known = job->spans.number != 0 && job->spans.number == l->number;

    l->number = 0;
    if (cuda_failed(c))
        return NULL;
    if (!take_keys(l, job, &same) || (!(known && same) && !make(c, l, job, tile_rows, most_states))) {
        cuda_fail(c, ERR_NOMEM, "there is no memory for a list of attention's work");
        return NULL;
    }
    if (!(known && same) && !send(c, l))
        return NULL;
    l->number = job->spans.number;
    return l;
}

/* Rows of all pairs fill tiles of 16 rows at least. Only a sequence's own keys are always one piece. */
size_t cuda_attend_list_bytes(const struct work_shape *shape)
{
    size_t pairs = (size_t)shape->rows * (size_t)shape->n_kv_heads;
    size_t tiles = pairs + (size_t)shape->rows * (size_t)shape->n_heads / MERGE_ROWS;

    return tiles * (shape->n_keys > ATTN_SPLIT ? MAX_PIECES + 1 : 1) * sizeof(struct attend_item);
}

void cuda_attend_lists_close(struct cuda *c)
{
    for (int i = 0; i < 2 * (ATTN_WHOLE + 1); i++) {
        struct attend_list &l = c->lists[i / 2][i % 2];
        cudaFree(l.device);
        free(l.n_keys);
        free(l.item);
        free(l.cost);
        free(l.turn);
        free(l.merge);
    }
}

/* cpu_select.c - selects the keys to keep: the k largest scores of a row, or of all rows of a layer together.
 *
 * A radix search finds the k-th largest score byte by byte from the top, among the scores that share the bytes found so
 * far. Then one pass counts the scores above those like it, and one in order of position keeps them and the first of
 * the alike. No sorting, no memory.
 */
#include "kernels/cpu/cpu.h"

#include "kernels/order.h"

#include <string.h>

enum {
    RADIX_BITS = 8, // bits of a score that one pass examines
    RADIX = 1 << RADIX_BITS,
};

/* The boundary of a selection: all scores above `lowest`, and the first `equals` scores equal to it. */
struct cut {
    uint32_t lowest;
    int equals;
};

/* Finds a cut byte by byte. */
struct search {
    uint32_t found; // the bits known so far
    int shift;      // of the byte being searched
    int wanted;     // scores still to be kept among those that share the found bits
    int count[RADIX];
};

static struct search search_of(int k)
{
    return (struct search){ .shift = 32 - RADIX_BITS, .wanted = k };
}

static uint32_t known_bits(const struct search *s)
{
    return s->shift + RADIX_BITS == 32 ? 0 : ~0u << (s->shift + RADIX_BITS);
}

/* After all scores are counted: determines one byte and moves on to the next. */
static void settle(struct search *s)
{
    int digit = RADIX - 1;

    for (; s->count[digit] < s->wanted; digit--)
        s->wanted -= s->count[digit];
    s->found |= (uint32_t)digit << s->shift;
    s->shift -= RADIX_BITS;
    memset(s->count, 0, sizeof(s->count));
}

/* The cut of the k largest of a row; 0 < k <= n. */
static struct cut cut_row(const float *score, int n, int k)
{
    struct search s = search_of(k);

    while (s.shift >= 0) {
        uint32_t known = known_bits(&s);
        for (int i = 0; i < n; i++) {
            uint32_t order = score_order(score[i]);
            if ((order & known) == s.found)
                s.count[order >> s.shift & (RADIX - 1)]++;
        }
        settle(&s);
    }
    return (struct cut){ s.found, s.wanted };
}

static void select_row(int32_t *kept, const float *score, int n, int k)
{
    int n_kept = 0, n_alike = k; // to be kept of the scores like the k-th largest

    if (k == 0)
        return;
    const uint32_t lowest = cut_row(score, n, k).lowest, above = score_order_above(lowest),
                   below = score_order_below(lowest);
    for (int i = 0; i < n; i++)
        n_alike -= score_order(score[i]) > above;
    for (int i = 0; i < n && n_kept < k; i++) {
        uint32_t order = score_order(score[i]);
        if (order > above || (order >= below && n_alike-- > 0))
            kept[n_kept++] = i;
    }
}

/* The start of each row's positions. */
static size_t *row_starts(struct cpu *c, const int *k, int n_heads)
{
    size_t *start = cpu_scratch(c, &c->list, ((size_t)n_heads + 1) * sizeof(*start));

    if (!start)
        return NULL;
    start[0] = 0;
    for (int h = 0; h < n_heads; h++)
        start[h + 1] = start[h] + (size_t)k[h];
    return start;
}

void cpu_top_k(struct backend *be, int32_t *kept, const float *score, int n_heads, int n, const int *k)
{
    struct cpu *c = cpu_of(be);
    const size_t *start = row_starts(c, k, n_heads);

    if (!start)
        return;
#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int h = 0; h < n_heads; h++)
        select_row(kept + start[h], score + (size_t)h * (size_t)n, n, k[h]);
}

/* ---- the rows of a layer together ---------------------------------------- */

/* Filters out the scores that a row's floor keeps. Passed: scores below the cut, and equal scores after the first
 * cut.equals. */
struct rest {
    struct cut cut;
    bool all; // there is no floor
};

static bool passes(struct rest *rest, uint32_t order)
{
    return rest->all || order < rest->cut.lowest || (order == rest->cut.lowest && rest->cut.equals-- <= 0);
}

static struct rest rest_of(const float *score, int n, int floor)
{
    return floor > 0 ? (struct rest){ .cut = cut_row(score, n, floor) } : (struct rest){ .all = true };
}

/* The counts of one group of rows; n_keep > floor * group. rest: scratch (group). */
static void count_group(int32_t *count, const float *score, int n, int group, const struct joint_keep *keep,
                        struct rest *rest)
{
    struct search s = search_of(keep->n_keep - keep->floor * group);

    for (int h = 0; h < group; h++)
        rest[h] = rest_of(score + (size_t)h * (size_t)n, n, keep->floor);
    while (s.shift >= 0) {
        uint32_t known = known_bits(&s);
        for (int h = 0; h < group; h++) {
            struct rest left = rest[h];
            for (int i = 0; i < n; i++) {
                uint32_t order = score_order(score[(size_t)h * (size_t)n + (size_t)i]);
                if (passes(&left, order) && (order & known) == s.found)
                    s.count[order >> s.shift & (RADIX - 1)]++;
            }
        }
        settle(&s);
    }
    for (int h = 0; h < group; h++) {
        count[h] = keep->floor;
        for (int i = 0; i < n; i++) {
            uint32_t order = score_order(score[(size_t)h * (size_t)n + (size_t)i]);
            if (passes(&rest[h], order))
                count[h] += order > s.found || (order == s.found && s.wanted-- > 0);
        }
    }
}

void cpu_joint_counts(struct backend *be, int32_t *count, const float *score, int n_heads, int n, int group,
                      const struct joint_keep *keep)
{
    struct cpu *c = cpu_of(be);

#pragma omp parallel for schedule(static) num_threads(c->n_threads)
    for (int i = 0; i < n_heads / group; i++) {
        struct rest *rest = cpu_scratch(c, &c->tile[cpu_thread()], (size_t)group * sizeof(*rest)); // (group)
        const int first = i * group;
        if (rest && keep[i].n_keep > keep[i].floor * group)
            count_group(count + first, score + (size_t)first * (size_t)n, n, group, &keep[i], rest);
        else
            for (int h = 0; h < group; h++)
                count[first + h] = keep[i].floor;
    }
}

/* ---- keeping ------------------------------------------------------------- */

void cpu_gather(struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                int n_heads, int head_dim)
{
    struct cpu *c = cpu_of(be);
    size_t row = (size_t)head_dim * dtype_size(be->dtype);
    size_t *start = cpu_scratch(c, &c->list, ((size_t)n_heads + 1) * sizeof(*start));

    if (!start)
        return;
    start[0] = 0;
    for (int h = 0; h < n_heads; h++)
        start[h + 1] = start[h] + (size_t)dst[h].n;
#pragma omp parallel for schedule(dynamic, 1) num_threads(c->n_threads)
    for (int h = 0; h < n_heads; h++) {
        const int32_t *from = kept + start[h];
        for (size_t i = 0; i < (size_t)dst[h].n; i++) {
            memcpy((char *)dst[h].k + i * row, (const char *)src[h].k + (size_t)from[i] * row, row);
            memcpy((char *)dst[h].v + i * row, (const char *)src[h].v + (size_t)from[i] * row, row);
        }
    }
}

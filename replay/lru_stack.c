/* lru_stack.c - times count up with every use; when they are used up, the runs get new ones in the same order. */
#include "replay/lru_stack.h"

#include <stdlib.h>
#include <string.h>

enum { TIMES_MIN = 64 };

int lru_stack_open(struct lru_stack *s, const struct runs *runs, struct err *err)
{
    /* a prompt has at most all runs, so half of the times are free after renewing them */
    int64_t n_times = 2 * (int64_t)runs->n + TIMES_MIN;

    *s = (struct lru_stack){ .runs = runs };
    if (n_times > INT32_MAX)
        return err_set(err, ERR_FAIL, "the log has %d different pieces of prompts, too many for a replay", runs->n);
    s->n_times = (int32_t)n_times;
    s->time = malloc(((size_t)runs->n + 1) * sizeof(*s->time));
    s->of = malloc((size_t)n_times * sizeof(*s->of));
    s->blocks = calloc((size_t)n_times + 1, sizeof(*s->blocks));
    if (!s->time || !s->of || !s->blocks) {
        lru_stack_close(s);
        return err_nomem(err);
    }
    memset(s->time, 0xff, ((size_t)runs->n + 1) * sizeof(*s->time));
    return 0;
}

void lru_stack_close(struct lru_stack *s)
{
    free(s->time);
    free(s->of);
    free(s->blocks);
    *s = (struct lru_stack){ 0 };
}

static void add(struct lru_stack *s, int32_t time, int64_t blocks)
{
    for (int32_t i = time + 1; i <= s->n_times; i += i & -i)
        s->blocks[i] += blocks;
}

/* Blocks last used at this time or before. */
static int64_t until(const struct lru_stack *s, int32_t time)
{
    int64_t sum = 0;

    for (int32_t i = time + 1; i > 0; i -= i & -i)
        sum += s->blocks[i];
    return sum;
}

int64_t lru_stack_above(const struct lru_stack *s, int32_t run)
{
    return s->time[run] < 0 ? INT64_MAX : s->total - until(s, s->time[run]);
}

/* Gives the runs the times 0, 1, 2 ... and builds the tree anew. */
static void renew(struct lru_stack *s)
{
    int32_t n = 0;

    for (int32_t t = 0; t < s->now; t++) {
        if (s->of[t] < 0)
            continue;
        s->of[n] = s->of[t];
        s->time[s->of[n]] = n;
        n++;
    }
    s->now = n;
    memset(s->blocks, 0, ((size_t)s->n_times + 1) * sizeof(*s->blocks));
    for (int32_t i = 1; i <= s->n_times; i++) {
        int32_t next = i + (i & -i);
        if (i <= n)
            s->blocks[i] += s->runs->at[s->of[i - 1]].n;
        if (next <= s->n_times)
            s->blocks[next] += s->blocks[i];
    }
}

void lru_stack_use(struct lru_stack *s, int32_t last)
{
    if (s->n_times - s->now <= s->runs->n)
        renew(s);
    for (int32_t r = last; r >= 0; r = s->runs->at[r].parent) {
        if (s->time[r] >= 0) {
            add(s, s->time[r], -s->runs->at[r].n);
            s->of[s->time[r]] = -1;
        } else {
            s->total += s->runs->at[r].n;
        }
        s->time[r] = s->now;
        s->of[s->now] = r;
        add(s, s->now++, s->runs->at[r].n);
    }
}

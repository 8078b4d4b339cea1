/* requests.c - the first two passes: prefixes are counted and chosen, then the requests of each context compared.
 */
#include "logs/requests.h"

#include "base/digest.h"
#include "logs/requests_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the first pass ------------------------------------------------------- */

static int count(void *arg, const struct request *r, struct err *err)
{
    struct requests *rq = arg;

    rq->first = fmin(rq->first, r->time); /* fmin and fmax ignore NaN */
    rq->last = fmax(rq->last, r->time);
    struct prefix_text text = { .key = r->apart, .at = r->bytes.at, .n = r->bytes.n };
    return requests_continued(rq, r, &text.from, err) ? err->code : prefix_add(&rq->tree, &text, err);
}

/* Is a prefix long enough, and used again, but by one conversation? */
static bool is_alone(const struct requests *rq, int32_t node)
{
    const struct prefix_node *p = node >= 0 ? &rq->tree.at[node] : NULL;

    return p && p->talks == 1 && p->uses > 1 && (size_t)p->depth * PREFIX_CHUNK >= rq->choice.min_bytes && p->depth > 0;
}

static int choose(struct requests *rq, struct err *err)
{
    prefix_tree_release(&rq->talks);
    for (int i = 0; i < rq->tree.n; i++)
        rq->n_alone += rq->choice.min_uses > 1 && is_alone(rq, i) && !is_alone(rq, rq->tree.at[i].parent);
    rq->mark = malloc(((size_t)rq->tree.n + 1) * sizeof(*rq->mark));
    if (!rq->mark)
        return err_nomem(err);
    rq->n_chosen = prefix_choose(&rq->tree, &rq->choice, rq->mark, err);
    if (rq->n_chosen < 0) {
        int code = rq->n_chosen;
        rq->n_chosen = 0;
        return code;
    }
    rq->slot = calloc((size_t)rq->n_chosen + 1, sizeof(*rq->slot));
    rq->order = calloc((size_t)rq->n_chosen + 1, sizeof(struct requests_slot *));
    if (!rq->slot || !rq->order)
        return err_nomem(err);
    for (int i = 0; i < rq->tree.n; i++)
        if (rq->mark[i] >= 0)
            rq->slot[rq->mark[i]].at = (size_t)rq->tree.at[i].depth * PREFIX_CHUNK;
    return 0;
}

/* ---- the second pass ------------------------------------------------------ */

struct requests_slot *requests_slot_of(const struct requests *rq, const struct request *r)
{
    uint64_t key = r->apart;
    int32_t found = -1;

    for (size_t i = 0; i + PREFIX_CHUNK < r->bytes.n; i += PREFIX_CHUNK) {
        key = prefix_key(key, r->bytes.at + i);
        int32_t node = prefix_find(&rq->tree, key);
        if (node < 0)
            break;
        found = rq->mark[node] >= 0 ? rq->mark[node] : found;
    }
    return found >= 0 ? &rq->slot[found] : NULL;
}

uint64_t requests_rest(const struct requests *rq, const struct requests_slot *s, const struct request *r, bool *asks)
{
    size_t n = r->bytes.n - s->at;

    *asks = n <= REQUESTS_MAX_QUESTION + s->common && !requests_continues(r, s->at + s->common);
    uint64_t digest = digest_xxh3_seeded(r->bytes.at + s->at, n, rq->seed);
    return digest ? digest : 1;
}

static int begin_slot(struct requests *rq, struct requests_slot *s, const struct request *r, struct err *err)
{
    size_t rest = r->bytes.n - s->at;

    s->n_ahead = rest < SLOT_AHEAD ? rest : SLOT_AHEAD;
    s->n_tail = rest < SLOT_TAIL ? rest : SLOT_TAIL;
    s->ahead = malloc(s->n_ahead + s->n_tail);
    s->asked = malloc(((size_t)rq->per_context + 1) * sizeof(*s->asked));
    if (!s->ahead || !s->asked)
        return err_nomem(err);
    memcpy(s->ahead, r->bytes.at + s->at, s->n_ahead);
    memcpy(s->ahead + s->n_ahead, r->bytes.at + r->bytes.n - s->n_tail, s->n_tail);
    s->common = s->n_ahead;
    s->tail = s->n_tail;
    s->min_n = r->bytes.n;
    s->newest = -(double)INFINITY;
    s->last = (double)NAN;
    return 0;
}

static void note_again(struct requests *rq, struct requests_slot *s, double at)
{
    double since = fabs(at - s->last); /* logs may come in any order */

    if (since >= 0)
        rq->again[(int)fmin(64 * log2(1 + since), REQUESTS_GAPS - 1)]++;
    s->last = at;
}

double requests_again(const struct requests *rq)
{
    int64_t n = 0, below = 0;
    int i = 0;

    for (int k = 0; k < REQUESTS_GAPS; k++)
        n += rq->again[k];
    while (n > 0 && (below += rq->again[i]) * 2 < n)
        i++;
    return n == 0 ? (double)NAN : i == 0 ? 0 : exp2((i + 0.5) / 64) - 1;
}

/* Shortens the bytes that all requests have in common. */
static void compare(struct requests_slot *s, const struct request *r)
{
    const char *at = r->bytes.at + s->at, *end = r->bytes.at + r->bytes.n, *tail = s->ahead + s->n_ahead + s->n_tail;
    size_t rest = r->bytes.n - s->at, i = 0;

    while (i < s->common && i < rest && at[i] == s->ahead[i])
        i++;
    s->common = i;
    for (i = 0; i < s->tail && i < rest && end[-1 - (ptrdiff_t)i] == tail[-1 - (ptrdiff_t)i];)
        i++;
    s->tail = i;
    s->min_n = r->bytes.n < s->min_n ? r->bytes.n : s->min_n;
}

/* Whole days, so that the last minutes of a log do not fill the list, and a draw stays the same as long as it can. */
static double days_ago(const struct requests *rq, double at)
{
    return fmax(0, floor((rq->last - at) / DAY)); /* fmax ignores NAN: no request has a time */
}

static bool is_better(const struct requests *rq, const struct requests_asked *a, const struct requests_asked *b)
{
    double a_days = days_ago(rq, a->at), b_days = days_ago(rq, b->at);

    return a_days != b_days ? a_days < b_days : a->rest < b->rest;
}

/* Keeps the best rests. A rest only gets better when it is asked again, so one that was dropped returns in time. */
static void keep_question(const struct requests *rq, struct requests_slot *s, struct requests_asked q)
{
    int i = 0;

    while (i < s->n_asked && s->asked[i].rest != q.rest)
        i++;
    if (i < s->n_asked)
        q.at = fmax(q.at, s->asked[i].at);
    else
        s->n_asked += s->n_asked < rq->per_context; /* the array has space for one more */
    for (; i > 0 && is_better(rq, &q, &s->asked[i - 1]); i--)
        s->asked[i] = s->asked[i - 1];
    s->asked[i] = q;
}

static int compare_request(void *arg, const struct request *r, struct err *err)
{
    struct requests *rq = arg;
    struct requests_slot *s = requests_slot_of(rq, r);
    bool asks;

    if (!s)
        return 0;
    if (!s->ahead && begin_slot(rq, s, r, err))
        return err->code;
    compare(s, r);
    uint64_t rest = requests_rest(rq, s, r, &asks);
    double at = isnan(r->time) ? (double)INFINITY : r->time; /* unknown: as new as the newest */
    s->newest = fmax(s->newest, at);
    note_again(rq, s, r->time);
    double middle = rq->first / 2 + rq->last / 2;
    bool before = rq->halves && r->time < middle; /* false for NAN */
    double end = before ? middle : rq->last;
    double weight = rq->half_life > 0 && !isnan(r->time) ? exp2((r->time - end) / rq->half_life) : 1;
    *(before ? &s->uses_before : &s->uses) += weight;
    if (asks)
        keep_question(rq, s, (struct requests_asked){ rest, at });
    return 0;
}

/* Before contexts are made: a slot is left out even if another one is cut back to the same context. */
static void forget(struct requests *rq)
{
    for (int i = 0; i < rq->n_chosen; i++)
        if (rq->slot[i].ahead && rq->last - rq->slot[i].newest > rq->forget) {
            rq->slot[i].state = SLOT_DROPPED;
            rq->n_forgotten++;
        }
}

int requests_visit(struct requests *rq, request_visit *each, void *arg, struct err *err)
{
    if (requests_each(rq, REQUESTS_FIRST, each, arg, err))
        return err->code;
    rq->n_unknown = rq->line.flaws[REQUEST_UNKNOWN] + rq->n_damaged;
    rq->n_left_out = rq->line.n_flawed + rq->n_damaged;
    if (rq->n_unread && (rq->logs.n == 0 || rq->n_bytes_unread > rq->n_bytes / 2)) {
        *err = rq->why;
        return err->code;
    }
    if (rq->n_lines == 0)
        return err_set(err, ERR_FORMAT, "the logs are empty");
    if (rq->line.n_requests == 0)
        return err_set(err, ERR_FORMAT,
                       "no usable request in %lld line%s of the logs; docs/requests.md shows what they may look like",
                       (long long)rq->n_lines, rq->n_lines == 1 ? "" : "s");
    if (!rq->partial && rq->n_used && rq->n_left_out > (rq->n_used + rq->n_left_out) / 10)
        return err_set(err, ERR_FORMAT,
                       "%lld of %lld requests are left out, more than a tenth; --partial goes on with the others",
                       (long long)rq->n_left_out, (long long)(rq->n_used + rq->n_left_out));
    return 0;
}

int requests_find(struct requests *rq, struct err *err)
{
    rq->first = rq->last = (double)NAN;
    if (requests_visit(rq, count, rq, err))
        return err->code;
    if (choose(rq, err))
        return err->code;
    int code = rq->n_chosen ? requests_each(rq, REQUESTS_AGAIN, compare_request, rq, err) : 0;
    if (!code && rq->forget > 0)
        forget(rq);
    return code;
}

void requests_close(struct requests *rq)
{
    for (int i = 0; i < rq->logs.n; i++) {
        free(rq->logs.at[i].label);
        close(rq->logs.at[i].fd);
    }
    free(rq->logs.at);
    for (int i = 0; i < rq->n_chosen && rq->slot; i++) {
        free(rq->slot[i].ahead);
        free(rq->slot[i].asked);
        free(rq->slot[i].id);
    }
    free(rq->slot);
    free(rq->mark);
    prefix_tree_release(&rq->tree);
    prefix_tree_release(&rq->talks);
    map_release(&rq->models);
    map_release(&rq->written);
    free(rq->order);
    request_line_release(&rq->line);
}

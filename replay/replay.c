/* replay.c - one pass over the requests. The stack distances of a request serve all policies; each policy has queues of
 * its own. */
#include "replay/replay.h"

#include "base/array.h"
#include "replay/lru_stack.h"
#include "replay/station.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A request that reads from SSD, and then goes to the GPUs. */
struct reading {
    double at, ready, gpu_s;
};

struct lane {
    const struct replay_policy *policy;
    struct replay_outcome *out;
    struct station gpu;
    double ssd_free;
    struct {
        struct reading *at; // by rising time of being ready
        size_t n, cap, first;
    } wait;
};

/* A run of the prompt at hand. */
struct piece {
    int64_t above, n; // blocks above it in the stack; its own
};

struct replaying {
    const struct replay *r;
    struct {
        struct piece *at;
        int n, cap;
    } prompt;
    struct runs runs;
    struct lru_stack stack;
    struct lane *lane; // (n_policies)
};

/* ---- what is found -------------------------------------------------------- */

/* Where the blocks of a prompt are in the stack now. */
static int find_prompt(struct replaying *p, const struct replay_request *q, struct err *err)
{
    p->prompt.n = 0;
    for (int32_t r = q->block < 0 ? -1 : p->runs.of[q->block]; r >= 0; r = p->runs.at[r].parent) {
        const struct piece piece = { lru_stack_above(&p->stack, r), p->runs.at[r].n };
        if (ARRAY_PUSH(&p->prompt, piece))
            return err_nomem(err);
    }
    return 0;
}

/* Units of the prompt whose blocks are among the topmost `capacity` of the stack. */
static int64_t found_units(const struct replaying *p, const struct replay_request *q, int64_t capacity)
{
    int64_t blocks = 0;

    for (int i = 0; i < p->prompt.n; i++) {
        const struct piece *piece = &p->prompt.at[i];
        if (piece->above < capacity)
            blocks += capacity - piece->above < piece->n ? capacity - piece->above : piece->n;
    }
    int64_t units = blocks * p->r->block_units;
    return units < q->units ? units : q->units - 1; // something is computed: the first token follows from it
}

double replay_prefill_s(const struct replay *r, int64_t n, int64_t found)
{
    double all = (double)n, old = (double)found;

    return (all - old) * (r->unit_s + r->pair_s * (all + old) / 2);
}

/* ---- when ----------------------------------------------------------------- */

static void serve(struct lane *l, const struct reading *w)
{
    l->out->ttft_s += station_serve(&l->gpu, w->ready, w->gpu_s) - w->at;
}

/* Serves those who have read by now. */
static void serve_until(struct lane *l, double now)
{
    while (l->wait.first < l->wait.n && l->wait.at[l->wait.first].ready <= now)
        serve(l, &l->wait.at[l->wait.first++]);
    if (l->wait.first == l->wait.n)
        l->wait.first = l->wait.n = 0;
}

static int arrive(struct lane *l, double now, double ssd_s, double gpu_s, struct err *err)
{
    struct reading w = { now, now, gpu_s };

    serve_until(l, now);
    if (ssd_s == 0) {
        serve(l, &w);
        return 0;
    }
    w.ready = l->ssd_free = fmax(now, l->ssd_free) + ssd_s;
    return ARRAY_PUSH(&l->wait, w) ? err_nomem(err) : 0;
}

/* ---- the pass ------------------------------------------------------------- */

static int replay_one(const struct replaying *p, struct lane *l, const struct replay_request *q, struct err *err)
{
    const struct replay *r = p->r;
    const struct replay_policy *c = l->policy;
    int64_t dram = found_units(p, q, c->dram), all = found_units(p, q, c->dram + c->ssd);
    double prefill_s = replay_prefill_s(r, q->units, all);
    double ssd_s = (double)(all - dram) * r->ssd_unit_s / c->factor;
    double gpu_s = (double)all * r->dram_unit_s / c->factor + prefill_s;

    l->out->dram += dram;
    l->out->ssd += all - dram;
    l->out->computed += q->units - all;
    l->out->prefill_s += prefill_s;
    l->out->busy_s += gpu_s;
    l->out->ssd_s += ssd_s;
    if (r->timed)
        return arrive(l, q->at - r->request[0].at, ssd_s, gpu_s, err);
    l->out->ttft_s += ssd_s + gpu_s;
    return 0;
}

static int pass(struct replaying *p, struct err *err)
{
    const struct replay *r = p->r;

    for (int i = 0; i < r->n_requests; i++) {
        const struct replay_request *q = &r->request[i];
        if (find_prompt(p, q, err))
            return err->code;
        for (int k = 0; k < r->n_policies; k++)
            if (replay_one(p, &p->lane[k], q, err))
                return err->code;
        if (q->block >= 0)
            lru_stack_use(&p->stack, p->runs.of[q->block]);
    }
    for (int k = 0; k < r->n_policies; k++) {
        serve_until(&p->lane[k], (double)INFINITY);
        p->lane[k].out->ttft_s /= r->n_requests ? r->n_requests : 1;
    }
    return 0;
}

int replay_runs(const struct replay *r, struct runs *runs, struct err *err)
{
    uint8_t *ends = calloc((size_t)r->n_blocks + 1, 1);

    if (!ends)
        return err_nomem(err);
    for (int i = 0; i < r->n_requests; i++)
        if (r->request[i].block >= 0)
            ends[r->request[i].block] = 1;
    int code = runs_make(runs, r->parent, ends, r->n_blocks, err);
    free(ends);
    return code;
}

static int open_lanes(struct replaying *p, struct replay_outcome *out, struct err *err)
{
    p->lane = calloc((size_t)p->r->n_policies + 1, sizeof(*p->lane));
    if (!p->lane)
        return err_nomem(err);
    for (int k = 0; k < p->r->n_policies; k++) {
        out[k] = (struct replay_outcome){ 0 };
        p->lane[k].policy = &p->r->policy[k];
        p->lane[k].out = &out[k];
        if (station_open(&p->lane[k].gpu, p->r->n_gpus, err))
            return err->code;
    }
    return 0;
}

int replay_run(const struct replay *r, struct replay_outcome *out, struct err *err)
{
    struct replaying p = { .r = r };
    int code = 0;

    if (open_lanes(&p, out, err) || replay_runs(r, &p.runs, err) || lru_stack_open(&p.stack, &p.runs, err) ||
        pass(&p, err))
        code = err->code;
    for (int k = 0; k < r->n_policies && p.lane; k++) {
        station_close(&p.lane[k].gpu);
        free(p.lane[k].wait.at);
    }
    free(p.lane);
    free(p.prompt.at);
    lru_stack_close(&p.stack);
    runs_release(&p.runs);
    return code;
}

/* ---- the order ------------------------------------------------------------ */

static int by_arrival(const void *a, const void *b)
{
    const struct replay_request *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

void replay_sort(struct replay *r)
{
    if (r->n_requests > 1)
        qsort(r->request, (size_t)r->n_requests, sizeof(*r->request), by_arrival);
}

/* simulate.c - one heap for what happens at a known time; tiers know their own next end. */
#include "replay/simulate.h"

#include "base/array.h"
#include "replay/reading.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ns_per_s = 1e9;
enum { WRITE = -1 };       // the number of a job that nobody waits for
enum { FIRST_TOKEN = -1 }; // an event's tier
enum { WORK = -1 };        // the request of what a GPU does for the policy

struct event {
    int64_t at;
    int32_t tier;    // whose read begins; or FIRST_TOKEN
    int32_t request; // or WORK
    double bytes;
};

struct waiting {
    int64_t since, ready; // for a GPU
    double gpu_s, kept;
    int reads; // that have not ended
};

struct simulating {
    struct simulation *s;
    struct {
        struct event *at;
        int n, cap;
    } event; // a heap
    struct reading *tier;
    struct writing {
        double weight; // bytes of reading that a byte written costs
        double queued; // of reading: for the next write
        double end;    // of the write at hand, in the work of the tier's reading; below 0: none
    } * writing;       // (T)
    double **total;    // (T) of the tier's reading
    struct {
        int32_t *at;
        int n, cap, first;
    } ready; // for a GPU, in the order of their readiness; without steps
    int free_gpus;
    struct steps steps;
    struct waiting *waiting; // (n)
    int64_t now;
    int arrived, in_system, decoding;
    bool working; // on the policy's piece of work
    double work_s;
};

/* ---- the heap --------------------------------------------------------------- */

static int before(const struct event *a, const struct event *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    return a->request < b->request || (a->request == b->request && a->tier < b->tier);
}

static int push(struct simulating *m, const struct event *e, struct err *err)
{
    const struct event event = *e;
    int at = m->event.n;

    if (ARRAY_PUSH(&m->event, event))
        return err_nomem(err);
    for (int up = (at - 1) / 2; at > 0 && before(&event, &m->event.at[up]); up = (at - 1) / 2) {
        m->event.at[at] = m->event.at[up];
        at = up;
    }
    m->event.at[at] = event;
    return 0;
}

static struct event pop(struct simulating *m)
{
    struct event *heap = m->event.at;
    const struct event first = heap[0], last = heap[--m->event.n];
    int at = 0;

    for (int child = 1; child < m->event.n; child = 2 * at + 1) {
        child += child + 1 < m->event.n && before(&heap[child + 1], &heap[child]);
        if (!before(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

/* ---- what happens ----------------------------------------------------------- */

/* What a request whose turn has come needs of a GPU. */
static double turn(void *arg, int i)
{
    struct simulating *m = arg;

    if (i == WORK)
        return m->work_s;
    struct waiting *w = &m->waiting[i];
    if (m->s->policy.turn && m->now > w->ready)
        w->gpu_s = m->s->policy.turn(m->s->policy.arg, i, w->gpu_s);
    return w->gpu_s;
}

/* Gives free GPUs to those that are ready. */
static int serve(struct simulating *m, struct err *err)
{
    while (m->free_gpus > 0 && m->ready.first < m->ready.n) {
        int32_t i = m->ready.at[m->ready.first++];
        double gpu_ns = round(turn(m, i) * ns_per_s);
        const struct event e = { m->now + (int64_t)gpu_ns, FIRST_TOKEN, i, 0 };
        m->s->gpu_busy_s += gpu_ns / ns_per_s;
        m->free_gpus--;
        if (push(m, &e, err))
            return err->code;
    }
    if (m->ready.first == m->ready.n)
        m->ready.first = m->ready.n = 0;
    return 0;
}

static int compute(struct simulating *m, int32_t i, struct err *err)
{
    m->waiting[i].ready = m->now;
    if (!m->s->gpu)
        return ARRAY_PUSH(&m->ready, i) ? err_nomem(err) : serve(m, err);
    const struct steps_job job = { .request = i, .output = m->s->output[i], .kv_bytes = m->waiting[i].kept };
    return steps_add(&m->steps, m->now, &job, err);
}

static int arrive(struct simulating *m, int i, struct err *err)
{
    struct sim_bytes read = { .n = 0 };
    struct waiting *w = &m->waiting[i];

    w->since = m->now;
    w->gpu_s = m->s->policy.arrive(m->s->policy.arg, i, &read);
    w->kept = read.kept;
    m->in_system++;
    for (int t = 0; t < m->s->tiers->n; t++) {
        if (read.at[t] <= 0)
            continue;
        int64_t latency = (int64_t)llround(m->s->tiers->at[t].latency_s * ns_per_s);
        const struct event e = { m->now + latency, t, i, read.at[t] };
        m->s->tier_read_s[t] += read.at[t] / m->total[t][m->tier[t].n_total - 1];
        w->reads++;
        if (push(m, &e, err))
            return err->code;
    }
    return w->reads ? 0 : compute(m, i, err);
}

/* How much may be written now. */
static struct sim_bytes room(const struct simulating *m)
{
    struct sim_bytes written = { .n = 0 };

    for (int t = 0; t < m->s->tiers->n; t++) {
        const struct writing *w = &m->writing[t];
        double at_hand = w->end < 0 ? 0 : fmax(w->end - reading_work(&m->tier[t], m->now), 0);
        double free = WRITE_QUEUE_S * m->total[t][0] - w->queued - at_hand;
        written.room[t] = m->s->alone || w->weight == 0 ? (double)INFINITY : fmax(free, 0) / w->weight;
    }
    return written;
}

/* Begins the next write to a tier, of all that is queued. */
static int write_next(struct simulating *m, int t, struct err *err)
{
    struct writing *w = &m->writing[t];
    double bytes = w->queued;

    w->queued = 0;
    w->end = -1;
    if (bytes <= 0)
        return 0;
    if (reading_begin(&m->tier[t], m->now, bytes, WRITE, err))
        return err->code;
    w->end = m->tier[t].work + bytes;
    return 0;
}

static int write(struct simulating *m, const struct sim_bytes *written, struct err *err)
{
    for (int t = 0; t < m->s->tiers->n && !m->s->alone; t++) {
        m->writing[t].queued += written->at[t] * m->writing[t].weight;
        if (m->writing[t].end < 0 && write_next(m, t, err))
            return err->code;
    }
    return 0;
}

static int worked(struct simulating *m, struct err *err)
{
    struct sim_bytes written = room(m);

    m->working = false;
    m->s->gpu_busy_s += m->s->gpu ? 0 : m->work_s;
    return m->s->policy.worked(m->s->policy.arg, &written, err) ? err->code : write(m, &written, err);
}

static int first_token(struct simulating *m, int i, struct err *err)
{
    struct sim_bytes written = room(m);

    if (i == WORK)
        return worked(m, err);
    m->s->ttft_s[i] = (double)(m->now - m->waiting[i].since) / ns_per_s;
    m->in_system--;
    return m->s->policy.finish(m->s->policy.arg, i, &written, err) ? err->code : write(m, &written, err);
}

/* Of a step. */
static int token(void *arg, int i, bool first, bool last, struct err *err)
{
    struct simulating *m = arg;

    m->decoding += first - last;
    if (last && i != WORK)
        m->s->e2e_s[i] = (double)(m->now - m->waiting[i].since) / ns_per_s;
    return first ? first_token(m, i, err) : 0;
}

static int read_ended(struct simulating *m, int tier, struct err *err)
{
    int32_t i = reading_end(&m->tier[tier]);

    if (i == WRITE)
        return write_next(m, tier, err);
    return --m->waiting[i].reads > 0 ? 0 : compute(m, i, err);
}

/* ---- one after another ------------------------------------------------------ */

/* Gives an idle GPU the policy's next piece of work. */
static int work(struct simulating *m, struct err *err)
{
    const struct sim_policy *policy = &m->s->policy;

    if (!policy->idle || m->working || !(m->s->gpu ? steps_idle(&m->steps) : m->free_gpus > 0))
        return 0;
    m->work_s = policy->idle(policy->arg);
    m->working = m->work_s >= 0;
    if (!m->working)
        return 0;
    if (m->s->gpu)
        return steps_add(&m->steps, m->now, &(struct steps_job){ .request = WORK, .output = 1 }, err);
    m->free_gpus--;
    return push(m, &(struct event){ m->now + (int64_t)llround(m->work_s * ns_per_s), FIRST_TOKEN, WORK, 0 }, err);
}

/* When the next request comes; INT64_MAX: none does. */
static int64_t next_arrival(const struct simulating *m)
{
    const struct simulation *s = m->s;

    if (m->arrived == s->n || (s->alone && m->in_system + m->decoding + m->working > 0))
        return INT64_MAX;
    return s->alone ? m->now : s->at[m->arrived];
}

/* The tier whose read ends next; -1: no read is in flight. */
static int next_tier(const struct simulating *m, int64_t *at)
{
    int first = -1;

    *at = INT64_MAX;
    for (int t = 0; t < m->s->tiers->n; t++) {
        int64_t end = reading_next(&m->tier[t]);
        if (end < *at) {
            *at = end;
            first = t;
        }
    }
    return first;
}

static void go_to(struct simulating *m, int64_t at)
{
    m->s->in_system_s += (double)(at - m->now) / ns_per_s * m->in_system;
    m->now = at;
}

static int next_event(struct simulating *m, struct err *err)
{
    int64_t read_end, arrival = next_arrival(m), event = m->event.n ? m->event.at[0].at : INT64_MAX;
    int64_t step = steps_next(&m->steps);
    int tier = next_tier(m, &read_end);

    if (tier >= 0 && read_end <= step && read_end <= event && read_end <= arrival) {
        go_to(m, read_end);
        return read_ended(m, tier, err);
    }
    if (step != INT64_MAX && step <= event && step <= arrival) {
        go_to(m, step);
        return steps_end(&m->steps, token, m, err);
    }
    if (event <= arrival) {
        const struct event e = pop(m);
        go_to(m, e.at);
        if (e.tier == FIRST_TOKEN) {
            m->free_gpus++;
            return first_token(m, e.request, err) ? err->code : serve(m, err);
        }
        return reading_begin(&m->tier[e.tier], m->now, e.bytes, e.request, err);
    }
    go_to(m, arrival);
    return arrive(m, m->arrived++, err);
}

static int open_tier(struct simulating *m, int t, struct err *err)
{
    struct tier tier = m->s->tiers->at[t];
    int reads = 1;

    for (int i = 0; i < tier.n_loads; i++)
        reads = tier.load[i].reads > reads ? tier.load[i].reads : reads;
    m->total[t] = malloc((size_t)reads * sizeof(*m->total[t]));
    if (!m->total[t])
        return err_nomem(err);
    for (int k = 1; k <= reads; k++) {
        tier_set_reads(&tier, k);
        m->total[t][k - 1] = k / (tier_read_s(&tier, (int64_t)ns_per_s) - tier.latency_s) * ns_per_s;
    }
    m->tier[t] = (struct reading){ .total = m->total[t], .n_total = reads };
    m->writing[t].weight = tier.write_bytes_per_s > 0 ? m->total[t][0] / tier.write_bytes_per_s : 0;
    m->writing[t].end = -1;
    m->s->tier_read_s[t] = 0;
    return 0;
}

static int open_all(struct simulating *m, struct err *err)
{
    const struct simulation *s = m->s;
    size_t n_tiers = (size_t)s->tiers->n + 1;

    m->tier = calloc(n_tiers, sizeof(*m->tier));
    m->total = calloc(n_tiers, sizeof(*m->total));
    m->writing = calloc(n_tiers, sizeof(*m->writing));
    m->waiting = calloc((size_t)s->n + 1, sizeof(*m->waiting));
    if (!m->tier || !m->total || !m->writing || !m->waiting)
        return err_nomem(err);
    for (int t = 0; t < s->tiers->n; t++)
        if (open_tier(m, t, err))
            return err->code;
    m->free_gpus = s->n_gpus;
    if (s->gpu && steps_open(&m->steps, s->gpu, s->n_gpus, err))
        return err->code;
    m->steps.turn = turn;
    m->steps.turn_arg = m;
    return 0;
}

int simulate(struct simulation *s, struct err *err)
{
    struct simulating m = { .s = s };
    int code = open_all(&m, err);

    s->gpu_busy_s = s->in_system_s = 0;
    while (!code && (m.arrived < s->n || m.in_system + m.decoding > 0))
        code = next_event(&m, err) ? err->code : work(&m, err);
    s->gpu_busy_s += m.steps.busy_s;
    s->end_s = (double)m.now / ns_per_s;
    for (int t = 0; t < s->tiers->n && m.tier && m.total; t++) {
        s->tier_busy_s[t] = (double)m.tier[t].busy_ns / ns_per_s;
        reading_release(&m.tier[t]);
        free(m.total[t]);
    }
    steps_close(&m.steps);
    free(m.tier);
    free(m.total);
    free(m.writing);
    free(m.waiting);
    free(m.event.at);
    free(m.ready.at);
    return code;
}

/* decode.c - many questions over many variants, decoded together.
 *
 * A sequence is one question over one variant. Sequences are numbered variant by variant, so the rows of a variant are
 * together in every pass, and their attention over the variant's keys is one item per kv head. Each sequence owns
 * `slots` slots of the store for its question and answer. A sequence that ends leaves the list of live ones; the others
 * stay in their slots. When memory or `batch` does not allow all sequences at once, they run in groups.
 *
 * No question is cut at a place that depends on its neighbours, so a sequence's answer does not depend on the batch.
 */
#include "engine/engine_internal.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

struct sequence {
    int index;    // v * n_questions + q: its place among the answers
    int slot;     // first of its slots
    int n_keys;   // slots filled
    int n_new;    // tokens of the answer so far
    int32_t next; // the token chosen last, which the model has not seen yet
};

/* A pass being put together. */
struct pass {
    int n, n_shared, n_own;
    int32_t ids[FORWARD_ROWS], position[FORWARD_ROWS], slot[FORWARD_ROWS];
    struct shared_span shared[FORWARD_ROWS];
    struct own_span own[FORWARD_ROWS];
};

struct decoder {
    struct session *session;
    const struct decode *job;
    struct answer *answer;
    struct kv_store store;
    int slots, group;      // slots of a sequence; sequences in a group
    struct sequence *live; // [group]
    int n_live;
    struct pass pass;
    int32_t pick[FORWARD_ROWS], best[FORWARD_ROWS];
    double question_s;
    int tokens_done;
};

static int min(int a, int b)
{
    return a < b ? a : b;
}

static const struct question_ids *question_of(const struct decoder *d, const struct sequence *s)
{
    return &d->job->question[s->index % d->job->n_questions];
}

static void report(struct decoder *d, int tokens)
{
    d->tokens_done += tokens;
    if (d->job->progress)
        d->job->progress(d->job->arg, d->tokens_done);
}

/* ---- passes ------------------------------------------------------------- */

/* Adds n tokens of a sequence to the pass; after it the sequence has n more keys. */
static void add_tokens(struct decoder *d, struct sequence *s, const int32_t *ids, int n)
{
    struct pass *r = &d->pass;
    const struct variant *variant = d->job->variant[s->index / d->job->n_questions];

    for (int i = 0; i < n; i++) {
        r->ids[r->n + i] = ids[i];
        r->position[r->n + i] = variant->n_tokens + s->n_keys + i;
        r->slot[r->n + i] = s->slot + s->n_keys + i;
    }
    s->n_keys += n;
    r->own[r->n_own++] = (struct own_span){ .rows = { r->n, n }, .slot = s->slot, .n_keys = s->n_keys };
    if (r->n_shared == 0 || r->shared[r->n_shared - 1].variant != variant)
        r->shared[r->n_shared++] = (struct shared_span){ .rows = { r->n, 0 }, .variant = variant };
    r->shared[r->n_shared - 1].rows.n += n;
    r->n += n;
}

static int run_pass(struct decoder *d, struct err *err)
{
    const struct pass *r = &d->pass;
    const struct batch b = { .n = r->n,
                             .ids = r->ids,
                             .position = r->position,
                             .slot = r->slot,
                             .store = d->store,
                             .shared = r->shared,
                             .own = r->own,
                             .n_shared = r->n_shared,
                             .n_own = r->n_own };
    return forward_run(&d->session->forward, &b, FORWARD_OUTPUT, err);
}

static void pass_clear(struct pass *r)
{
    r->n = r->n_shared = r->n_own = 0;
}

/* Runs the pass and chooses the next token of the sequences from .. to - 1, whose last rows are in d->pick. */
static int run_and_pick(struct decoder *d, int from, int to, struct err *err)
{
    if (run_pass(d, err) || forward_best(&d->session->forward, d->pick, to - from, d->best, err))
        return err->code;
    for (int i = from; i < to; i++)
        d->live[i].next = d->best[i - from];
    return 0;
}

/* Runs the start of a question that is longer than a pass, alone, until the rest fits one. Returns the number of tokens
 * run, or an error. */
static int run_long_start(struct decoder *d, struct sequence *s, struct err *err)
{
    const struct question_ids *q = question_of(d, s);
    int done = 0;

    for (; q->n - done > FORWARD_ROWS; done += FORWARD_ROWS) {
        pass_clear(&d->pass);
        add_tokens(d, s, q->ids + done, FORWARD_ROWS);
        if (run_pass(d, err))
            return err->code;
    }
    return done;
}

/* All questions of the group, as many whole ones per pass as fit. */
static int run_questions(struct decoder *d, struct err *err)
{
    double start = clock_now();

    for (int i = 0, to; i < d->n_live; i = to) {
        int skip = run_long_start(d, &d->live[i], err), tokens = skip;
        if (skip < 0)
            return err->code;
        pass_clear(&d->pass);
        for (to = i; to < d->n_live; to++, skip = 0) {
            const struct question_ids *q = question_of(d, &d->live[to]);
            if (d->pass.n + q->n - skip > FORWARD_ROWS)
                break;
            add_tokens(d, &d->live[to], q->ids + skip, q->n - skip);
            d->pick[to - i] = d->pass.n - 1;
            tokens += q->n - skip;
        }
        if (run_and_pick(d, i, to, err))
            return err->code;
        report(d, tokens);
    }
    d->question_s += clock_now() - start;
    return 0;
}

/* ---- answers ------------------------------------------------------------ */

/* Adds the chosen token to the answer, unless it is a stop. False: the sequence has ended. */
static bool take_token(struct decoder *d, struct sequence *s)
{
    struct answer *a = &d->answer[s->index];

    if (tokenizer_stops(d->session->engine->tokenizer, s->next))
        return false;
    a->ids[a->n++] = s->next;
    return a->n < d->job->max_new_tokens;
}

/* Adds a token to every live answer; sequences that have ended leave, the others keep their order. */
static void take_tokens(struct decoder *d)
{
    int kept = 0, ended_early = 0;

    for (int i = 0; i < d->n_live; i++) {
        struct sequence *s = &d->live[i];
        s->n_new++;
        if (take_token(d, s))
            d->live[kept++] = *s;
        else
            ended_early += d->job->max_new_tokens - s->n_new;
    }
    report(d, d->n_live + ended_early);
    d->n_live = kept;
}

static int run_step(struct decoder *d, struct err *err)
{
    pass_clear(&d->pass);
    for (int i = 0; i < d->n_live; i++) {
        add_tokens(d, &d->live[i], &d->live[i].next, 1);
        d->pick[i] = i;
    }
    return run_and_pick(d, 0, d->n_live, err);
}

/* Sequences first .. first + n - 1, from question to end. */
static int run_group(struct decoder *d, int first, int n, struct err *err)
{
    d->n_live = n;
    for (int i = 0; i < n; i++) {
        struct answer *a = &d->answer[first + i];
        d->live[i] = (struct sequence){ .index = first + i, .slot = i * d->slots };
        a->ids = malloc((size_t)d->job->max_new_tokens * sizeof(*a->ids));
        if (!a->ids)
            return err_nomem(err);
    }
    if (run_questions(d, err))
        return err->code;
    for (take_tokens(d); d->n_live > 0; take_tokens(d))
        if (run_step(d, err))
            return err->code;
    return 0;
}

/* ---- the whole job ------------------------------------------------------ */

static int check(const struct session *s, const struct decode *job, int *longest, struct err *err)
{
    const struct model_config *c = &s->engine->config;

    if (job->max_new_tokens < 1)
        return err_set(err, ERR_USAGE, "an answer needs at least 1 token, not %d", job->max_new_tokens);
    *longest = 0;
    for (int i = 0; i < job->n_questions; i++) {
        if (job->question[i].n < 1)
            return err_set(err, ERR_USAGE, "question %d is empty", i);
        if (engine_check_ids(s->engine, job->question[i].ids, job->question[i].n, err))
            return err_wrap(err, "question %d", i);
        if (job->question[i].n > *longest)
            *longest = job->question[i].n;
    }
    for (int i = 0; i < job->n_variants; i++) {
        int64_t end = (int64_t)job->variant[i]->n_tokens + *longest + job->max_new_tokens - 1;
        if (end > c->max_tokens)
            return err_set(err, ERR_USAGE, "context, question and answer are up to %lld tokens, the model allows %d",
                           (long long)end, c->max_tokens);
    }
    return 0;
}

/* Allocates the store for as many sequences at once as `batch` and memory allow, in whole variants where at least one
 * fits. */
static int open_store(struct decoder *d, struct err *err)
{
    int n = d->job->n_variants * d->job->n_questions, Q = d->job->n_questions;
    int max = min(n, d->job->batch > 0 ? min(d->job->batch, FORWARD_ROWS) : FORWARD_ROWS);
    struct backend *be = d->session->engine->backend;
    size_t each = kv_store_bytes(&d->session->engine->config, (size_t)d->slots);

    while (max > 1 && each * (size_t)max > be->memory(be).free / 2)
        max /= 2;
    for (;; max /= 2) {
        d->group = max > Q ? max / Q * Q : max;
        if (kv_store_alloc(&d->store, d->session->engine, (size_t)d->group * (size_t)d->slots, err) == 0)
            break;
        if (max <= 1)
            return err->code;
    }
    d->live = calloc((size_t)d->group, sizeof(*d->live));
    return d->live ? 0 : err_nomem(err);
}

static void answers_release(struct answer *answer, int n)
{
    for (int i = 0; i < n; i++) {
        free(answer[i].ids);
        answer[i] = (struct answer){ 0 };
    }
}

int session_decode(struct session *s, const struct decode *job, struct answer *answer, double *question_s,
                   struct err *err)
{
    int n = job->n_variants * job->n_questions, longest = 0;

    memset(answer, 0, (size_t)n * sizeof(*answer));
    if (check(s, job, &longest, err))
        return err->code;
    struct decoder *d = calloc(1, sizeof(*d));
    if (!d)
        return err_nomem(err);
    d->session = s;
    d->job = job;
    d->answer = answer;
    d->slots = longest + job->max_new_tokens - 1;
    int code = open_store(d, err);
    for (int i = 0; i < n && !code; i += d->group)
        code = run_group(d, i, min(n - i, d->group), err);
    if (code)
        answers_release(answer, n);
    else if (question_s)
        *question_s = n > 0 ? d->question_s / n : 0;
    kv_store_free(&d->store, s->engine);
    free(d->live);
    free(d);
    return code;
}

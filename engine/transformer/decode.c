/* decode.c - many questions over many variants, decoded together (continuous batching).
 *
 * A sequence is one question over one variant. Sequences are numbered variant by variant and admitted in that order, so
 * the tokens of a variant are neighbours in every pass and share one span of attention over its rows. A pass takes
 * question tokens while there are any, sequence after sequence; a long question may take several passes. Then it takes
 * one new token of every sequence. So no span of a pass is much longer than the others, which is what attention is
 * fastest at. A sequence that ends gives its slots of the store to one that waits.
 *
 * The shared beginning of all questions runs once per variant, as a sequence without an answer; its keys and values are
 * copied to the slots of each question's sequence. No token's bits depend on the rest of its pass, so neither this nor
 * the order of admission changes an answer.
 *
 * Sampled variants are the last ones, so in each pass the sampled picks follow the greedy ones. Each sequence has a
 * random generator of its own.
 */
#include "engine/transformer/engine_internal.h"

#include "base/unconst.h"
#include "engine/transformer/slots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sequence {
    int variant, question;
    struct slot_range slots;
    int n_keys;   // slots filled
    int n_new;    // tokens of the answer so far
    int32_t next; // the token chosen last; the model has not seen it yet
    struct rng rng;
};

struct decoder {
    struct session *session;
    const struct decode *job;
    struct answer *answer;
    struct forward_job forward;
    struct slots slots;
    int max_live;
    struct sequence *live; // [max_live], in the order of variants
    int n_live;
    int admitted;     // sequences so far, of n_variants * n_questions
    int *prefix_slot; // [n_variants]: where the shared tokens of a variant are
    /* of given answers */
    struct question_ids
        *whole;         // [n_questions]: question and answer, but for the last id; NULL: answers are to be found
    int32_t *ids;       // their memory
    int32_t *target;    // [pass rows]: the id after each pick
    double *likelihood; // [pass rows]
    int *picked;        // [pass rows]: the live sequence of each pick
    double *unit;       // [pass rows]: a random number for each sampled pick
    int tokens_done;
};

static int min(int a, int b)
{
    return a < b ? a : b;
}

static void report(struct decoder *d, int tokens)
{
    d->tokens_done += tokens;
    if (d->job->progress)
        d->job->progress(d->job->arg, d->tokens_done);
}

static const struct question_ids *question_of(const struct decoder *d, const struct sequence *s)
{
    return d->whole ? &d->whole[s->question] : &d->job->question[s->question];
}

/* ---- passes ------------------------------------------------------------- */

/* Adds n tokens of a sequence to the pass; the pass adds n keys to the sequence. */
static void add_tokens(struct decoder *d, struct sequence *s, const int32_t *ids, int n)
{
    struct pass *p = &d->session->forward.pass;

    pass_add(p,
             &(struct pass_tokens){ .ids = ids,
                                    .n = n,
                                    .position = d->job->variant[s->variant]->n_tokens + s->n_keys,
                                    .slot = s->slots.first + s->n_keys },
             s->slots.first);
    pass_share(p, s->variant, n, d->job->n_shared);
    s->n_keys += n;
}

/* ---- the shared beginning of the questions ------------------------------ */

/* Runs the shared tokens of all variants, as many tokens per pass as fit. */
static int run_prefixes(struct decoder *d, struct err *err)
{
    struct forward *f = &d->session->forward;
    struct backend *be = d->session->engine->backend;
    int n = d->job->n_shared;

    pass_clear(&f->pass);
    for (int v = 0; v < d->job->n_variants; v++) {
        struct sequence s = { .variant = v, .slots = { slots_take(&d->slots, n), n } };
        d->prefix_slot[v] = s.slots.first;
        for (int some; s.n_keys < n;) {
            some = min(n - s.n_keys, f->pass.rows - f->pass.n);
            add_tokens(d, &s, d->job->question[0].ids + s.n_keys, some);
            bool last = v + 1 == d->job->n_variants && s.n_keys == n;
            if (f->pass.n < f->pass.rows && !last)
                continue;
            forward_run(f, &d->forward);
            if (be->sync(be, err))
                return err->code;
            pass_clear(&f->pass);
        }
    }
    return 0;
}

/* Copies the shared tokens of a variant to live sequences from .. n_live - 1, all of that variant. */
static int copy_prefix(struct decoder *d, int from, struct err *err)
{
    struct backend *be = d->session->engine->backend;
    int n = d->n_live - from, variant = d->live[from].variant;
    int32_t *to = malloc((size_t)n * sizeof(*to));

    if (!to)
        return err_nomem(err);
    for (int i = 0; i < n; i++) {
        to[i] = d->live[from + i].slots.first;
        d->live[from + i].n_keys = d->job->n_shared;
    }
    be->copy_slots(be, &d->forward.store, &d->session->forward.shape,
                   &(struct slot_copy){ d->prefix_slot[variant], d->job->n_shared, to, n });
    free(to);
    report(d, n * d->job->n_shared);
    if (d->live[d->n_live - 1].question < d->job->n_questions - 1)
        return 0;
    return slots_give(&d->slots, (struct slot_range){ d->prefix_slot[variant], d->job->n_shared }, err);
}

/* ---- admission ---------------------------------------------------------- */

/* Makes the next sequence live if there is space. Returns 1 if it did, 0 if not, or an error. */
static int admit_one(struct decoder *d, struct err *err)
{
    int Q = d->job->n_questions;
    struct sequence s = { .variant = d->admitted / Q, .question = d->admitted % Q };
    struct answer *a = &d->answer[d->admitted];

    if (d->n_live == d->max_live)
        return 0;
    if (d->job->n_sampled > 0)
        s.rng = rng_new(d->job->seed[s.question]);
    s.slots.n = d->job->question[s.question].n + d->job->max_new_tokens - 1;
    s.slots.first = slots_take(&d->slots, s.slots.n);
    if (s.slots.first < 0)
        return 0;
    a->stop = -1;
    a->ids = d->whole ? NULL : malloc((size_t)d->job->max_new_tokens * sizeof(*a->ids));
    if (!a->ids && !d->whole)
        return err_nomem(err);
    d->live[d->n_live++] = s;
    d->admitted++;
    return 1;
}

/* Admits sequences of one variant while there is space; returns their number or an error. */
static int admit_variant(struct decoder *d, struct err *err)
{
    int from = d->n_live, variant = d->admitted / d->job->n_questions, code = 1;

    while (code == 1 && d->admitted / d->job->n_questions == variant)
        code = admit_one(d, err);
    if (code >= 0 && d->n_live > from && d->job->n_shared > 0)
        code = copy_prefix(d, from, err);
    return code < 0 ? code : d->n_live - from;
}

static int admit(struct decoder *d, struct err *err)
{
    int n = 1;

    while (n > 0 && d->admitted < d->job->n_variants * d->job->n_questions)
        n = admit_variant(d, err);
    if (n >= 0 && d->n_live == 0)
        return err_set(err, ERR_NOMEM, "the memory planned for questions has no space for one of them");
    return n < 0 ? n : 0;
}

/* ---- passes of answers -------------------------------------------------- */

/* Adds as many of a sequence's remaining question tokens to the pass as fit; returns how many. */
static int add_question(struct decoder *d, struct sequence *s)
{
    const struct pass *p = &d->session->forward.pass;
    const struct question_ids *q = question_of(d, s);
    int n = min(q->n - s->n_keys, p->rows - p->n);

    if (n <= 0)
        return 0;
    add_tokens(d, s, q->ids + s->n_keys, n);
    report(d, n);
    return n;
}

/* Picks the last token added, of live sequence i. */
static void pick_last(struct decoder *d, int i)
{
    struct pass *p = &d->session->forward.pass;

    d->picked[p->n_picks] = i;
    pass_pick(p, 1);
}

/* Fills a pass: question tokens if there are any, else a token of every sequence. */
static void fill_pass(struct decoder *d)
{
    struct pass *p = &d->session->forward.pass;

    pass_clear(p);
    for (int i = 0; i < d->n_live; i++)
        if (add_question(d, &d->live[i]) > 0 && d->live[i].n_keys == question_of(d, &d->live[i])->n)
            pick_last(d, i);
    if (p->n > 0)
        return;
    for (int i = 0; i < d->n_live; i++) {
        add_tokens(d, &d->live[i], &d->live[i].next, 1);
        pick_last(d, i);
    }
}

static int n_targets(const struct answer *given)
{
    return given->n + (given->stop >= 0);
}

/* Picks those of the n tokens added last, of live sequence i, that come before tokens of its given answer. */
static void pick_given(struct decoder *d, int i, int n)
{
    struct pass *p = &d->session->forward.pass;
    const struct sequence *s = &d->live[i];
    const struct answer *given = &d->job->given[s->question];
    int before = d->job->question[s->question].n - 1; // keys before the first pick
    int first = s->n_keys - n > before ? s->n_keys - n : before;

    for (int k = first; k < s->n_keys; k++) {
        int at = k - before;
        d->picked[p->n_picks + k - first] = i;
        d->target[p->n_picks + k - first] = at < given->n ? given->ids[at] : given->stop;
    }
    if (first < s->n_keys)
        pass_pick(p, s->n_keys - first);
}

/* Fills a pass with tokens of questions and their given answers. */
static void fill_given(struct decoder *d)
{
    pass_clear(&d->session->forward.pass);
    for (int i = 0; i < d->n_live; i++)
        pick_given(d, i, add_question(d, &d->live[i]));
}

/* ---- given answers -------------------------------------------------------- */

/* Adds up the likelihoods of the picks; sequences that have ended leave. */
static int take_given(struct decoder *d, struct err *err)
{
    int kept = 0, Q = d->job->n_questions, tokens = 0;

    for (int k = 0; k < d->session->forward.pass.n_picks; k++) {
        const struct sequence *s = &d->live[d->picked[k]];
        d->answer[s->variant * Q + s->question].log_likelihood +=
            d->likelihood[k] / n_targets(&d->job->given[s->question]);
    }
    for (int i = 0; i < d->n_live; i++) {
        struct sequence s = d->live[i];
        if (s.n_keys < question_of(d, &s)->n) {
            d->live[kept++] = s;
            continue;
        }
        tokens += d->job->question[s.question].n + d->job->max_new_tokens - s.n_keys;
        if (slots_give(&d->slots, s.slots, err))
            return err->code;
    }
    d->n_live = kept;
    report(d, tokens);
    return 0;
}

/* The ids of each question and the answer to it. */
static int open_given(struct decoder *d, int rows, struct err *err)
{
    const struct decode *job = d->job;
    size_t n = 0;

    for (int q = 0; q < job->n_questions; q++)
        n += (size_t)(job->question[q].n + job->given[q].n);
    d->whole = calloc((size_t)job->n_questions + 1, sizeof(*d->whole));
    d->ids = malloc((n + 1) * sizeof(*d->ids));
    d->target = calloc((size_t)rows, sizeof(*d->target));
    d->likelihood = calloc((size_t)rows, sizeof(*d->likelihood));
    if (!d->whole || !d->ids || !d->target || !d->likelihood)
        return err_nomem(err);
    int32_t *at = d->ids;
    for (int q = 0; q < job->n_questions; q++) {
        const struct question_ids *question = &job->question[q];
        int more = n_targets(&job->given[q]) - 1;
        memcpy(at, question->ids, (size_t)question->n * sizeof(*at));
        memcpy(at + question->n, job->given[q].ids, (size_t)more * sizeof(*at));
        d->whole[q] = (struct question_ids){ at, question->n + more };
        at += question->n + more;
    }
    return 0;
}

/* Draws a number for each picked sequence of a sampled variant. */
static struct draws draw(const struct decoder *d)
{
    struct draws draws = { .unit = d->unit, .temperature = d->job->temperature };

    for (int i = 0; i < d->session->forward.pass.n_picks; i++) {
        struct sequence *s = &d->live[d->picked[i]];
        if (s->variant >= d->job->n_variants - d->job->n_sampled)
            draws.unit[draws.n++] = rng_unit(&s->rng);
    }
    return draws;
}

/* Adds the chosen token to the answer, unless it is a stop. False: the sequence has ended. */
static bool take_token(struct decoder *d, struct sequence *s, const struct best *best)
{
    struct answer *a = &d->answer[s->variant * d->job->n_questions + s->question];
    float margin = best->value - best->second;

    if (s->n_new++ == 0 || margin < a->margin)
        a->margin = margin;
    s->next = best->id;
    if (tokenizer_stops(d->session->engine->tokenizer, best->id)) {
        a->stop = best->id;
        return false;
    }
    a->ids[a->n++] = best->id;
    return a->n < d->job->max_new_tokens;
}

/* Takes the picked tokens; sequences that have ended leave, the others keep their order. */
static int take_tokens(struct decoder *d, struct err *err)
{
    const struct forward *f = &d->session->forward;
    int kept = 0, pick = 0, tokens = 0;

    for (int i = 0; i < d->n_live; i++) {
        struct sequence s = d->live[i];
        bool picked = pick < f->pass.n_picks && d->picked[pick] == i;
        bool goes_on = !picked || take_token(d, &s, &f->best_host[pick]);
        pick += picked;
        tokens += picked;
        if (goes_on) {
            d->live[kept++] = s;
            continue;
        }
        tokens += d->job->max_new_tokens - s.n_new;
        if (slots_give(&d->slots, s.slots, err))
            return err->code;
    }
    d->n_live = kept;
    report(d, tokens);
    return 0;
}

/* Chooses the next token of each picked sequence. */
static int choose(struct decoder *d, struct err *err)
{
    struct draws draws = draw(d);

    return forward_best(&d->session->forward, &draws, err) ? err->code : take_tokens(d, err);
}

static int run_all(struct decoder *d, struct err *err)
{
    struct forward *f = &d->session->forward;

    if (d->job->n_shared > 0 && run_prefixes(d, err))
        return err->code;
    while (d->n_live > 0 || d->admitted < d->job->n_variants * d->job->n_questions) {
        if (admit(d, err))
            return err->code;
        if (d->whole)
            fill_given(d);
        else
            fill_pass(d);
        forward_run(f, &d->forward);
        if (d->whole ? forward_likelihood(f, d->target, d->likelihood, err) || take_given(d, err) : choose(d, err))
            return err->code;
    }
    return 0;
}

/* ---- the whole job ------------------------------------------------------ */

static int check_questions(const struct session *s, const struct decode *job, int *longest, struct err *err)
{
    *longest = 0;
    for (int i = 0; i < job->n_questions; i++) {
        const struct question_ids *q = &job->question[i];
        if (q->n < 1)
            return err_set(err, ERR_USAGE, "question %d is empty", i);
        if (q->n <= job->n_shared || memcmp(q->ids, job->question[0].ids, (size_t)job->n_shared * sizeof(*q->ids)) != 0)
            return err_set(err, ERR_USAGE, "question %d does not begin with the %d tokens that all share", i,
                           job->n_shared);
        if (engine_check_ids(s->engine, q->ids, q->n, err))
            return err_wrap(err, "question %d", i);
        *longest = q->n > *longest ? q->n : *longest;
    }
    return 0;
}

static int check(const struct session *s, const struct decode *job, int *longest, struct err *err)
{
    const struct model_config *c = &s->engine->config;

    if (job->max_new_tokens < 1)
        return err_set(err, ERR_USAGE, "an answer needs at least 1 token, not %d", job->max_new_tokens);
    if (check_questions(s, job, longest, err))
        return err->code;
    for (int q = 0; job->given && q < job->n_questions; q++)
        if (n_targets(&job->given[q]) < 1 || n_targets(&job->given[q]) > job->max_new_tokens ||
            engine_check_ids(s->engine, job->given[q].ids, job->given[q].n, err))
            return err_set(err, ERR_USAGE, "the given answer to question %d is none", q);
    for (int i = 0; i < job->n_variants; i++) {
        int64_t end = (int64_t)job->variant[i]->n_tokens + *longest + job->max_new_tokens - 1;
        int limit = model_limit(c, job->variant[i]->n_tokens);
        if (end > limit)
            return err_set(err, ERR_USAGE, "context, question and answer are up to %lld tokens, the model allows %d",
                           (long long)end, limit);
        if (end > s->engine->plan.max_positions)
            return err_set(err, ERR_NOMEM,
                           "context, question and answer are up to %lld tokens, memory was planned "
                           "for %d",
                           (long long)end, s->engine->plan.max_positions);
    }
    return 0;
}

/* Memory for the job: the store takes the rest of the pool, or less if the job needs less. */
static int open_decoder(struct decoder *d, int longest, struct err *err)
{
    struct session *s = d->session;
    const struct decode *job = d->job;
    int rows = s->forward.pass.rows;
    struct plan_decode want = { .n_variants = job->n_variants, .n_questions = job->n_questions };

    want.n_shared = job->n_shared;
    want.longest = longest + job->max_new_tokens - 1;
    for (int q = 0; q < job->n_questions; q++)
        want.slots += job->question[q].n + job->max_new_tokens - 1;
    d->max_live = job->batch > 0 ? min(job->batch, rows) : rows;
    int slots = plan_slots(s->engine, &want, s->pool.bytes - s->pool.used);
    if (slots == 0)
        return err_set(err, ERR_NOMEM, "the memory planned for questions has no space for one of them");
    d->live = calloc((size_t)d->max_live, sizeof(*d->live));
    d->picked = calloc((size_t)rows, sizeof(*d->picked));
    d->unit = calloc((size_t)d->max_live, sizeof(*d->unit));
    d->prefix_slot = calloc((size_t)job->n_variants, sizeof(*d->prefix_slot));
    if (!d->live || !d->picked || !d->unit || !d->prefix_slot)
        return err_nomem(err);
    if (job->given && open_given(d, rows, err))
        return err->code;
    d->forward = (struct forward_job){ .kind = ATTN_OWN, .end = FORWARD_OUTPUT };
    d->forward.store = kv_store_take(&s->pool, s->engine, (size_t)slots, err);
    if (!d->forward.store.k || kv_table_take(s, job->variant, job->n_variants, &d->forward.table, err))
        return err->code;
    return slots_init(&d->slots, slots, err);
}

static void close_decoder(struct decoder *d)
{
    free(d->live);
    free(d->picked);
    free(d->unit);
    free(d->prefix_slot);
    free(d->whole);
    free(d->ids);
    free(d->target);
    free(d->likelihood);
    free(unconst(d->forward.table.host));
    slots_release(&d->slots);
}

static void answers_release(struct answer *answer, int n)
{
    for (int i = 0; i < n; i++) {
        free(answer[i].ids);
        answer[i] = (struct answer){ 0 };
    }
}

int session_decode(struct session *s, const struct decode *job, struct answer *answer, struct err *err)
{
    int n = job->n_variants * job->n_questions, longest = 0;
    struct decoder d = { .session = s, .job = job, .answer = answer };
    size_t mark = pool_mark(&s->pool);

    memset(answer, 0, (size_t)n * sizeof(*answer));
    if (n == 0)
        return 0;
    if (check(s, job, &longest, err))
        return err->code;
    int code = open_decoder(&d, longest, err);
    if (!code)
        code = run_all(&d, err);
    if (code)
        answers_release(answer, n);
    close_decoder(&d);
    pool_reset(&s->pool, mark);
    return code;
}

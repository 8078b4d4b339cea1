/* drift.c - what a plan relies on, the new questions about it, and what their answers say. */
#include "drift/drift.h"

#include "base/digest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- table and manifest ----------------------------------------------------- */

static bool is_compressed(const struct placement *p)
{
    return p->tier >= 0 && strcmp(p->config, "none") != 0;
}

/* A table also names questions that nobody asked yet. */
static bool is_answered(const struct table *t, int question)
{
    return t->answer_n_tokens[table_answer(t, question, 0)] >= 0;
}

static int check_models(const struct drift *d, struct err *err)
{
    const struct table *t = d->table;
    const struct manifest *m = d->manifest;

    if (!t->predicted_quality || !t->predicted_sd || (d->facts && (!t->predicted_facts || !t->predicted_facts_sd)))
        return err_set(err, ERR_FORMAT, "the table has no predicted qualities%s; evp-score writes them",
                       d->facts ? " or facts" : "");
    if (strcmp(t->measure, TABLE_LIKELIHOOD) == 0)
        return err_set(err, ERR_FORMAT, "the table was measured by likelihood: its variants gave no answers");
    if (*m->model_digest && *t->model_digest && strcmp(m->model_digest, t->model_digest) != 0)
        return err_set(err, ERR_FORMAT,
                       "the manifest is for another model than the table's '%s': its weights or its tokenizer differ "
                       "(digest %.12s..., not %.12s...)",
                       t->model, m->model_digest, t->model_digest);
    return 0;
}

static int differs(const char *id, const char *what, int64_t is, int64_t want, struct err *err)
{
    return err_set(err, ERR_FORMAT, "context '%.200s' has %lld %s in the manifest, %lld in the table", id,
                   (long long)is, what, (long long)want);
}

/* A placement is about the same tokens and bytes as its cell. */
static int check_placement(const struct table *t, const struct placement *p, const struct drift_context *c,
                           struct err *err)
{
    int64_t bytes = t->cell_bytes[table_cell(t, c->row, c->config)];

    if (p->n_tokens != t->n_tokens[c->row])
        return differs(p->id, "tokens", p->n_tokens, t->n_tokens[c->row], err);
    if (strcmp(p->token_digest, t->context_token_digest[c->row]) != 0)
        return err_set(err, ERR_FORMAT,
                       "context '%.200s' has other tokens in the manifest than in the table: another tokenizer or "
                       "another text",
                       p->id);
    if (bytes >= 0 && p->bytes != bytes)
        return differs(p->id, "bytes", p->bytes, bytes, err);
    return 0;
}

static int add_placement(struct drift *d, const struct placement *p, struct err *err)
{
    const struct table *t = d->table;
    struct drift_context c = { .id = p->id,
                               .row = map_find(&t->ids, p->id, strlen(p->id)),
                               .config = table_find_config(t, p->config),
                               .frequency = p->frequency,
                               .asked_until = DRIFT_NEVER };

    d->n_compressed++;
    if (c.row >= 0 && c.config < 0)
        return err_set(err, ERR_FORMAT, "context '%.200s' is placed as '%.100s', a config that the table lacks", p->id,
                       p->config);
    if (c.row >= 0 && check_placement(t, p, &c, err))
        return err->code;
    size_t cell = c.row < 0 ? 0 : table_cell(t, c.row, c.config);
    c.promised = c.row < 0 ? (double)NAN : d->facts ? (double)t->predicted_facts[cell] : t->predicted_quality[cell];
    if (isnan(c.promised)) {
        d->n_unknown++;
        return 0;
    }
    double sd = (double)(d->facts ? t->predicted_facts_sd : t->predicted_sd)[cell];
    c.floor = drift_floor(c.promised, isnan(sd) ? 0 : sd);
    c.prefill_s = fmax(t->prefill_s[c.row], 0);
    drift_test_night(&c.test);
    d->at[d->n++] = c;
    return map_add(&d->ids, p->id, strlen(p->id), NULL) >= 0 ? 0 : err_nomem(err);
}

int drift_begin(struct drift *d, const struct table *t, const struct manifest *m, struct err *err)
{
    int *known = calloc((size_t)t->n_contexts + 1, sizeof(*known));

    d->table = t;
    d->manifest = m;
    d->at = calloc((size_t)m->n + 1, sizeof(*d->at));
    int code = d->at && known ? check_models(d, err) : err_nomem(err);
    for (int i = 0; i < m->n && !code; i++)
        if (is_compressed(&m->at[i]))
            code = add_placement(d, &m->at[i], err);
    for (int q = 0; q < t->n_questions && !code; q++)
        known[t->question_context[q]] += is_answered(t, q);
    for (int i = 0; i < d->n && !code; i++)
        d->at[i].n_known = known[d->at[i].row];
    free(known);
    return code;
}

void drift_release(struct drift *d)
{
    free(d->at);
    free(d->numbers);
    map_release(&d->ids);
}

/* ---- new questions ----------------------------------------------------------- */

struct dated {
    int context, question;
    double at;
    uint64_t key;
};

/* By context, newest first; questions of one time, or none, in a fixed pseudo-random order. */
static int by_time(const void *a, const void *b)
{
    const struct dated *x = a, *y = b;

    if (x->context != y->context)
        return x->context < y->context ? -1 : 1;
    if (x->at > y->at || x->at < y->at)
        return x->at > y->at ? -1 : 1;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->question - y->question;
}

/* Adds the questions of `q` without an answer in the table to `order`; returns their number, or -1 without memory. */
static int find_new(const struct drift *d, const struct questions *q, struct dated *order)
{
    const struct table *t = d->table;
    struct map known = { 0 };
    int n = 0;

    for (int i = 0; i < t->n_questions; i++)
        if (is_answered(t, i) && map_add(&known, t->question_id[i], strlen(t->question_id[i]), NULL) == MAP_NOMEM) {
            map_release(&known);
            return -1;
        }
    for (int i = 0; i < q->n; i++) {
        const struct question *is = &q->at[i];
        int c = map_find(&d->ids, is->context, strlen(is->context));
        if (c >= 0 && map_find(&known, is->id, strlen(is->id)) < 0)
            order[n++] = (struct dated){ c, i, is->asked_at, digest_xxh3(is->id, strlen(is->id)) };
    }
    map_release(&known);
    return n;
}

int drift_questions(struct drift *d, const struct questions *q, struct err *err)
{
    struct dated *order = calloc((size_t)q->n + 1, sizeof(*order));
    int n = order ? find_new(d, q, order) : -1;

    d->questions = q;
    d->numbers = calloc((size_t)q->n + 1, sizeof(*d->numbers));
    if (n < 0 || !d->numbers) {
        free(order);
        return err_nomem(err);
    }
    if (n)
        qsort(order, (size_t)n, sizeof(*order), by_time);
    for (int i = 0; i < n; i++) {
        struct drift_context *c = &d->at[order[i].context];
        d->numbers[i] = order[i].question;
        if (c->n_new == 0)
            c->question = d->numbers + i;
        if (c->n_new == d->per_context)
            continue;
        c->n_new++;
        if (!c->moved && order[i].at > c->asked_until)
            c->n_ask = c->n_new;
    }
    free(order);
    return 0;
}

int drift_check_contexts(struct drift *d, const struct contexts *c, bool may_cut, struct err *err)
{
    for (int i = 0; i < d->n; i++) {
        int at = map_find(&c->ids, d->at[i].id, strlen(d->at[i].id));
        int64_t is = at < 0 ? -1 : c->at[at].n_tokens, want = d->table->n_tokens[d->at[i].row];
        if (is >= 0 && (may_cut ? is < want : is != want))
            return err_set(err, ERR_FORMAT,
                           "context '%.200s' has %lld tokens in CONTEXTS, %lld in the table: another tokenizer or "
                           "another text",
                           d->at[i].id, (long long)is, (long long)want);
        if (at < 0) {
            d->n_absent += d->at[i].n_new > 0;
            d->at[i].n_new = d->at[i].n_ask = 0;
        }
    }
    return 0;
}

int drift_check_embedder(const struct drift *d, const char *digest, struct err *err)
{
    const char *want = d->table->embedder_digest;

    if (!*want || strcmp(digest, want) == 0)
        return 0;
    return err_set(err, ERR_FORMAT, "the table was scored with another embedder (digest %.12s..., not %.12s...)", want,
                   digest);
}

int64_t drift_all_answers(const struct drift *d)
{
    int64_t n = 0;

    for (int i = 0; i < d->n; i++)
        n += (int64_t)d->at[i].n_ask * d->table->n_configs;
    return n;
}

/* Most used first. */
static int by_use(const void *a, const void *b)
{
    const struct drift_context *x = *(struct drift_context *const *)a, *y = *(struct drift_context *const *)b;

    if (x->frequency > y->frequency || x->frequency < y->frequency)
        return x->frequency > y->frequency ? -1 : 1;
    return strcmp(x->id, y->id);
}

int drift_budget(struct drift *d, double seconds, struct err *err)
{
    struct drift_context **order = calloc((size_t)d->n + 1, sizeof(*order));
    int n = 0;

    if (!order)
        return err_nomem(err);
    for (int i = 0; i < d->n; i++)
        if (d->at[i].n_ask > 0)
            order[n++] = &d->at[i];
    if (n)
        qsort(order, (size_t)n, sizeof(*order), by_use);
    for (int i = 0; i < n; i++) {
        seconds -= order[i]->prefill_s;
        if (seconds < 0) {
            order[i]->n_ask = 0;
            d->n_over_budget++;
        }
    }
    free(order);
    return 0;
}

/* ---- answers ------------------------------------------------------------------ */

void drift_take(const struct drift *d, struct drift_context *c, struct drift_answer a)
{
    if (c->moved)
        return;
    c->sum += fmin(fmax(a.kept, 0), 1);
    c->n_seen++;
    c->tested = true;
    c->asked_until = fmax(c->asked_until, a.at);
    drift_test_see(&c->test, c->floor, a.kept);
    c->moved = drift_test_wealth(&c->test) >= d->n_compressed / d->false_alarms;
}

bool drift_undecided(const struct drift_context *c)
{
    return !c->moved && drift_test_wealth(&c->test) >= 1;
}

void drift_settle(struct drift *d)
{
    for (int i = 0; i < d->n; i++)
        drift_test_night(&d->at[i].test);
}

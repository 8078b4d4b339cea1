/* drift_log.c - evp-drift --served: answers from logs, compared with the uncompressed cache's by the embedder, or by
 * the facts that they keep. */
#include "drift/drift_served.h"
#include "base/log.h"
#include "cmd/backend_say.h"
#include "cmd/drift_ask.h"
#include "cmd/embedder_find.h"
#include "kernels/backend.h"
#include "profiler/score/facts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1024 }; // pairs

static void say(const struct served *s)
{
    if (s->n_skipped)
        log_warn("%" PRId64 " of %" PRId64 " lines are no served answers", s->n_skipped, s->n_lines);
    if (s->n_other)
        log_info("%" PRId64 " served answers are of contexts or configs that the plan does not place", s->n_other);
    if (s->n_before)
        log_info("%" PRId64 " served answers are not newer than the state", s->n_before);
    if (s->n_alone)
        log_warn("%d of %d served answers have no answer of the uncompressed cache to the same question, neither in "
                 "the table nor in the logs",
                 s->n_alone, s->n_alone + s->n_pairs);
}

/* Embeds `n` pairs, the texts of which follow each other, and takes their similarities. */
static int take_batch(struct drift *d, struct embedder *e, const struct served_answer *const *pair, int n,
                      struct err *err)
{
    int width = embedder_width(e);
    const char **text = calloc(2 * (size_t)n, sizeof(*text));
    float *vector = calloc(2 * (size_t)n * (size_t)width, sizeof(*vector));
    int code = text && vector ? 0 : err_nomem(err);

    for (int i = 0; i < n && !code; i++) {
        text[2 * i] = pair[i]->answer;
        text[2 * i + 1] = pair[i]->reference;
    }
    if (!code)
        code = embedder_run(e, &(struct embed_texts){ text, 2 * n }, vector, NULL, err);
    for (int i = 0; i < n && !code; i++) {
        const float *v = vector + 2 * (size_t)i * (size_t)width;
        bool same = strcmp(pair[i]->answer, pair[i]->reference) == 0;
        double x = same ? 1 : (double)embed_cosine(v, v + width, width);
        drift_take(d, &d->at[pair[i]->context], (struct drift_answer){ x, pair[i]->time });
    }
    free(text);
    free(vector);
    return code;
}

static int take_pairs(struct drift *d, const struct served *s, struct embedder *e, struct err *err)
{
    const struct served_answer *pair[BATCH];
    int n = 0, code = 0;

    for (int i = 0; i < s->n && !code; i++) {
        if (s->at[i].reference)
            pair[n++] = &s->at[i];
        if (n == BATCH || (n && i == s->n - 1)) {
            code = take_batch(d, e, pair, n, err);
            n = 0;
        }
    }
    return code;
}

static int check_embedder(const struct drift *d, const struct embedder *e, struct err *err)
{
    char digest[DIGEST_HEX];

    return embedder_digest(e, digest, err) ? err->code : drift_check_embedder(d, digest, err);
}

static int embed_pairs(struct drift *d, const struct served *s, const struct drift_asking *a, struct err *err)
{
    struct backend *backend =
        backend_open(&(struct backend_options){ .name = a->backend, .n_threads = a->threads }, err);
    if (backend)
        backend_say(backend, a->threads);
    struct embedder *e = backend ? embedder_find(a->embedder, backend, err) : NULL;
    int code = e ? check_embedder(d, e, err) : err->code;

    if (!code)
        code = take_pairs(d, s, e, err);
    embedder_close(e);
    if (backend)
        backend->close(backend);
    return code;
}

/* How many tokens a served answer had is not known: each may be cut. */
static int take_facts(struct drift *d, const struct served_answer *a, struct err *err)
{
    struct facts reference = { 0 }, answer = { 0 };
    double share = (double)NAN;
    int code = facts_read(&reference, &(struct facts_of){ a->reference, true, FACTS_DETECT }, err);

    if (!code)
        code = facts_read(&answer, &(struct facts_of){ a->answer, true, reference.language }, err);
    if (!code && facts_kept(&reference, &answer, &share, err) && err->code != ERR_FORMAT) // ERR_FORMAT: too long
        code = err->code;
    if (!isnan(share))
        drift_take(d, &d->at[a->context], (struct drift_answer){ share, a->time });
    facts_release(&reference);
    facts_release(&answer);
    return code;
}

int drift_served(struct drift *d, struct drift_asking *a, struct err *err)
{
    struct served s = { .d = d };
    int code = 0;

    for (int i = 0; i < a->served.n && !code; i++)
        code = served_read(&s, a->served.at[i], err);
    if (!code)
        code = served_pair(&s, err);
    if (!code)
        say(&s);
    for (int i = 0; d->facts && i < s.n && !code; i++)
        code = s.at[i].reference ? take_facts(d, &s.at[i], err) : 0;
    if (!code && s.n_pairs && !d->facts)
        code = embed_pairs(d, &s, a, err);
    a->n_answers = s.n_pairs;
    served_release(&s);
    return code;
}

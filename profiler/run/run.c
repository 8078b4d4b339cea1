/* run.c - one context: prefill, then groups of configs with the same open questions. A group runs in batches that fit
 * the memory: derive the variants, answer all questions in one batch, keep the measurements, release the variants. */
#include "profiler/run/run.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/rng.h"
#include "kernels/pool.h"
#include "profiler/run/groups.h"
#include "profiler/run/prefill_curve.h"
#include "profiler/run/unvisited.h"
#include "profiler/table/gold_list.h"
#include "variants/sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The state of a context's run. */
struct context_run {
    const struct run *run;
    const struct work *work;
    struct compressor *compressor;
    struct table *out;
    int64_t reported, before; // tokens reported to progress() so far; tokens of finished groups
    struct prefill_curve curve;
    double flop_per_token; // of answers, in the current batch of a group; 0: prefill
    struct work_groups groups;
    struct variant *variant;           // (V + 1)
    const struct variant **pointer;    // (V + 1)
    struct question_ids *question;     // (n_questions): the open ones
    int *question_at;                  // (n_questions): their indices in the work
    uint64_t *seed;                    // (n_questions): for their sampled answers
    struct answer *answer;             // ((V + 1) * n_questions)
    struct answer *given;              // (n_questions): the reference's, for variants to judge
    struct map lengths;                // of the heads of variants whose decoding was timed -> a row of decode_s
    double (*decode_s)[TABLE_BATCHES]; // (lengths.n)
};

/* ---- progress ------------------------------------------------------------------ */

/* Operations of a prefill of the first n tokens. */
static double prefill_flop(const struct context_run *c, int64_t n)
{
    return engine_cost(c->run->engine, &(struct engine_work){ .n_tokens = (int)n }).prefill_flop;
}

static void report_pace(const struct context_run *c, int64_t tokens)
{
    if (c->flop_per_token > 0)
        pace_add(c->run->pace, PACE_ANSWERS, (double)(tokens - c->reported) * c->flop_per_token);
    else
        pace_add(c->run->pace, PACE_PREFILL, prefill_flop(c, tokens) - prefill_flop(c, c->reported));
}

static void report(struct context_run *c, int64_t tokens)
{
    if (tokens <= c->reported)
        return;
    if (c->run->pace)
        report_pace(c, tokens);
    if (c->run->progress)
        c->run->progress(c->run->arg, tokens - c->reported);
    c->reported = tokens;
}

static void on_tokens(void *arg, int done)
{
    struct context_run *c = arg;

    report(c, c->before + done);
}

int64_t run_tokens(const struct grid *g, const struct work *w)
{
    int64_t n = w->n_open > 0 ? w->ids.n : 0;

    for (int v = 0; v < g->n_configs; v++) {
        int times = v == 0 && g->temperature > 0 ? 2 : 1;
        for (int q = 0; q < w->n_questions; q++)
            if (work_open(w, v)[q])
                n += times * (w->question_ids[q].n + g->max_new_tokens);
    }
    return n;
}

double run_derived(const struct grid *g, const struct work *w)
{
    int n = w->n_open > 0 ? 1 : 0;

    for (int v = 0; v < g->n_configs; v++)
        n += work_n_open(w, v) == 0 ? 0 : v == 0 && g->temperature > 0 ? 2 : 1;
    return (double)n * w->ids.n;
}

/* One variant was derived, or a question timed. */
static void report_derived(const struct context_run *c)
{
    if (c->run->pace)
        pace_add(c->run->pace, PACE_DERIVING, c->work->ids.n);
}

/* ---- results --------------------------------------------------------------------- */

/* Keeps the dataset's right answers to the questions that came with it. */
static int keep_gold(const struct work *w, struct table *t, struct err *err)
{
    for (int q = 0; q < w->n_questions; q++) {
        char *json;
        if (gold_find(w->context, w->question[q]->text, &json, err) || (json && table_own(t, json, err)))
            return err->code;
        t->gold_answers[q] = json ? json : "";
    }
    return 0;
}

/* Fills the values that are known before the run. The strings belong to the inputs, which outlive the table. */
static int start_table(const struct run *run, const struct work *w, struct table *t, struct err *err)
{
    const struct grid *g = run->grid;

    if (table_alloc(t, 1, g->n_configs, w->n_questions, err))
        return err->code;
    const struct kv_shape shape = engine_kv_shape(run->engine, w->ids.n);
    if (unvisited_row(t, 0, w, &shape, err))
        return err->code;
    for (int v = 0; v < g->n_configs; v++)
        t->config_name[v] = g->config[v].name;
    for (int q = 0; q < w->n_questions; q++) {
        t->question_id[q] = w->question[q]->id;
        t->question_text[q] = w->question[q]->text;
        t->question_split[q] = split_name(w->question[q]->split);
        t->question_origin[q] = w->question[q]->origin;
        t->question_context[q] = 0;
        t->asked_at[q] = w->question[q]->asked_at > 0 ? w->question[q]->asked_at : (double)NAN;
    }
    t->prefill_flop[0] = engine_cost(run->engine, &(struct engine_work){ .n_tokens = w->ids.n }).prefill_flop;
    t->profiled_at[0] = clock_utc();
    if (keep_gold(w, t, err))
        return err->code;
    return table_set_text(&t->lineage, run->lineage, err);
}

/* Keeps the answer to question q of entry `entry` of the groups. */
static int keep_answer(struct context_run *c, int entry, int q, const struct answer *answer, struct err *err)
{
    bool sampled = entry == c->groups.sampled;
    size_t at = sampled ? (size_t)q : table_answer(c->out, q, c->groups.member[entry]);
    struct buf text = { 0 };

    if (tokenizer_decode(engine_tokenizer(c->run->engine), answer->ids, answer->n, &text, err)) {
        buf_release(&text);
        return err->code;
    }
    char *taken = buf_take(&text);
    if (table_own(c->out, taken, err))
        return err->code;
    (sampled ? c->out->sampled_text : c->out->answer_text)[at] = taken;
    (sampled ? c->out->sampled_n_tokens : c->out->answer_n_tokens)[at] = answer->n;
    return 0;
}

/* Keeps how likely a variant makes the reference's answer to question q. */
static void keep_likelihood(struct context_run *c, int entry, int q, const struct answer *answer)
{
    size_t at = table_answer(c->out, q, c->groups.member[entry]);

    c->out->log_likelihood[at] = (float)fmin(answer->log_likelihood, 0);
    if (c->groups.member[entry] != 0)
        c->out->answer_n_tokens[at] = 0;
}

static int keep_variant(struct context_run *c, int v, const struct variant *variant, struct err *err)
{
    c->out->cell_bytes[v] = variant->bytes;
    if (variant->bytes_read < variant->bytes) {
        if (table_alloc_read(c->out, err))
            return err->code;
        c->out->cell_bytes_read[v] = variant->bytes_read;
    }
    c->out->size_frac[v] = variant->size_frac;
    c->out->keep_frac[v] = variant->keep_frac;
    c->out->compress_s[v] = variant->compress_s;
    c->out->decompress_s[v] = variant->decompress_s;
    return 0;
}

/* ---- decoding ---------------------------------------------------------------------- */

/* Times the decoding over a variant, alone. Variants with as many rows in every head take the same time, so the first
 * of them is timed: all of one drop, and quantised ones with the reference. */
static int time_decoding(struct context_run *c, int v, const struct variant *variant, struct err *err)
{
    size_t heads = (size_t)variant->shape.n_layers * (size_t)variant->shape.n_kv_heads;
    int *n = malloc(heads * sizeof(*n));
    bool added = false;

    if (!n)
        return err_nomem(err);
    for (size_t i = 0; i < heads; i++)
        n[i] = variant->rows[i].n;
    int at = map_add(&c->lengths, (const char *)n, heads * sizeof(*n), &added), code = 0;
    free(n);
    if (at == MAP_NOMEM)
        return err_nomem(err);
    for (int i = 0; i < TABLE_BATCHES && added && !code; i++)
        code = session_decode_s(c->run->session, variant, table_batch[i], &c->decode_s[at][i], err);
    for (int i = 0; i < TABLE_BATCHES && !code; i++)
        c->out->decode_s[i][v] = c->decode_s[at][i];
    return code;
}

/* ---- groups ------------------------------------------------------------------------ */

/* The seed of a question's draws: depends only on the ids of context and question. */
static uint64_t seed_of(const struct question *q)
{
    return rng_named(rng_named(0, q->context).state, q->id).state;
}

/* Lists the open questions of a group's configs. Returns their number. */
static int list_questions(struct context_run *c, int config)
{
    const struct work *w = c->work;
    int n = 0;

    for (int q = 0; q < w->n_questions; q++) {
        if (!work_open(w, config)[q])
            continue;
        c->question[n] = (struct question_ids){ .ids = w->question_ids[q].at, .n = w->question_ids[q].n };
        c->seed[n] = seed_of(w->question[q]);
        c->question_at[n++] = q;
    }
    return n;
}

/* Decodes entries first .. first + n - 1 of the groups. The sampled entry is the last of its group. */
static int decode_variants(struct context_run *c, int first, int n, int n_questions, struct err *err)
{
    struct decode job = { .variant = c->pointer,
                          .n_variants = n,
                          .question = c->question,
                          .n_questions = n_questions,
                          .n_shared = c->work->n_shared,
                          .max_new_tokens = c->run->grid->max_new_tokens,
                          .n_sampled = c->groups.sampled == first + n - 1,
                          .temperature = c->run->grid->temperature,
                          .seed = c->seed,
                          .given = c->run->grid->judges ? c->given : NULL,
                          .progress = on_tokens,
                          .arg = c };
    int n_answers = n * n_questions;

    int code = session_decode(c->run->session, &job, c->answer, err);
    for (int i = 0; i < n_answers && !code; i++) {
        int entry = first + i / n_questions, q = c->question_at[i % n_questions];
        if (job.given)
            keep_likelihood(c, entry, q, &c->answer[i]);
        else
            code = keep_answer(c, entry, q, &c->answer[i], err);
    }
    for (int i = 0; i < n_answers; i++)
        free(c->answer[i].ids);
    if (code)
        return code;
    for (int q = 0; q < n_questions; q++)
        c->before += (int64_t)n * (c->question[q].n + job.max_new_tokens);
    report(c, c->before);
    return 0;
}

/* Derives n variants, decodes their answers, and releases them. */
static int run_variants(struct context_run *c, int first, int n, int n_questions, struct err *err)
{
    struct pool *pool = session_full(c->run->session)->pool;
    size_t mark = pool_mark(pool);
    int code = 0, made = 0;

    while (made < n && !code) {
        const struct config *config = c->groups.config[first + made];
        code = compressor_variant(c->compressor, config, VARIANT_ROWS, &c->variant[made], err);
        if (code) {
            err_wrap(err, "config '%s'", config->name);
            break;
        }
        c->pointer[made] = &c->variant[made];
        int v = c->groups.member[first + made];
        if (first + made != c->groups.sampled) {
            code = keep_variant(c, v, &c->variant[made], err);
            code = !code && c->work->decodes[v] ? time_decoding(c, v, &c->variant[made], err) : 0;
        }
        report_derived(c);
        made++;
    }
    if (!code)
        code = decode_variants(c, first, n, n_questions, err);
    for (int i = 0; i < made; i++)
        variant_release(&c->variant[i]);
    pool_reset(pool, mark);
    return code;
}

/* Operations per token of the answers of configs first .. end - 1, in the tokens that report() counts. */
static double answer_flop(const struct context_run *c, int first, int end, int n_questions)
{
    struct engine_work batch = work_of_group(c->run->grid, c->work, &c->groups, first, end);
    double tokens = 0;

    for (int q = 0; q < n_questions; q++)
        tokens += c->question[q].n + c->run->grid->max_new_tokens;
    return engine_cost(c->run->engine, &batch).decode_flop / (tokens * (end - first));
}

/* Derives the reference. */
static int derive_none(struct context_run *c, struct variant *full, struct err *err)
{
    struct config none;

    return config_parse(&none, "none", err) ? err->code
                                            : compressor_variant(c->compressor, &none, VARIANT_ROWS, full, err);
}

/* Finds the reference's answers to a group's questions, and keeps them if it is in the group. */
static int find_given(struct context_run *c, int first, int n_questions, struct err *err)
{
    struct variant full;
    const struct variant *pointer = &full;
    struct decode job = { .variant = &pointer,
                          .n_variants = 1,
                          .question = c->question,
                          .n_questions = n_questions,
                          .n_shared = c->work->n_shared,
                          .max_new_tokens = c->run->grid->max_new_tokens };

    if (derive_none(c, &full, err))
        return err->code;
    int code = session_decode(c->run->session, &job, c->given, err);
    for (int q = 0; q < n_questions && !code && c->groups.member[first] == 0; q++)
        code = keep_answer(c, first, c->question_at[q], &c->given[q], err);
    variant_release(&full);
    return code;
}

static void release_given(struct context_run *c)
{
    for (int q = 0; q < c->work->n_questions; q++)
        free(c->given[q].ids);
    memset(c->given, 0, (size_t)c->work->n_questions * sizeof(*c->given));
}

/* Runs configs first .. end - 1 of the groups, which have the same open questions. */
static int run_group(struct context_run *c, int first, int end, struct err *err)
{
    int n_questions = list_questions(c, c->groups.member[first]);

    if (c->run->grid->judges && find_given(c, first, n_questions, err))
        return err->code;
    while (first < end) {
        struct engine_work rest = work_of_group(c->run->grid, c->work, &c->groups, first, end);
        int now = session_variants_at_once(c->run->session, &rest);
        c->flop_per_token = answer_flop(c, first, first + now, n_questions);
        if (run_variants(c, first, now, n_questions, err))
            return err->code;
        first += now;
    }
    release_given(c);
    return 0;
}

/* ---- the whole context ---------------------------------------------------------------- */

static void on_prefill(void *arg, int done, double seconds)
{
    struct context_run *c = arg;

    prefill_curve_note(&c->curve, done, seconds);
    report(c, done);
}

/* Prefills once and adds the time to *timed; keeps the curve of the fastest prefill. */
static int prefill_once(struct context_run *c, const struct prefill *p, struct timed *timed, struct err *err)
{
    struct prefill_curve before = c->curve;
    double seconds;

    c->curve = (struct prefill_curve){ .n_tokens = p->n };
    if (session_prefill(c->run->session, p, &seconds, err))
        return err->code;
    timed_add(timed, seconds);
    if (seconds > timed->fastest)
        c->curve = before;
    if (c->run->timing && timed->n > 1)
        c->run->timing->repeated_s += seconds;
    return 0;
}

/* The side pass that some methods need. */
static int repeat(struct context_run *c, const struct prefill *p, struct err *err)
{
    const struct engine_work work = { .n_tokens = p->n, .config = c->groups.config, .n_configs = c->groups.n };

    if (!(p->needs & NEED_REPEAT))
        return 0;
    if (session_repeat(c->run->session, p, err))
        return err->code;
    if (c->run->pace)
        pace_add(c->run->pace, PACE_PREFILL, engine_cost(c->run->engine, &work).side_flop);
    if (c->run->timing)
        timing_side(c->run->timing, session_full(c->run->session)->repeat_s);
    return c->run->fit ? kvzap_fit_add(c->run->fit, session_full(c->run->session), err) : 0;
}

static int prefill(struct context_run *c, struct err *err)
{
    struct prefill p = { .ids = c->work->ids.at, .n = c->work->ids.n, .progress = on_prefill, .arg = c };
    struct timed timed = { 0 };
    struct timing *timing = c->run->timing;
    double flop = prefill_flop(c, p.n);

    configs_need(c->groups.config, c->groups.n, &p.needs, &p.window);
    do
        if (prefill_once(c, &p, &timed, err))
            return err->code;
    while (timing && timing_again(timing, &timed, flop));
    if (timing)
        timing_add(timing, c->work->context->id, &timed, flop);
    c->out->prefill_s[0] = timed.fastest;
    c->out->prefill_n[0] = timed.n;
    c->out->prefill_spread[0] = timed_spread(&timed);
    c->before = c->work->ids.n;
    report(c, c->before);
    if (c->run->pace)
        pace_skip(c->run->pace);
    if (repeat(c, &p, err))
        return err->code;
    return prefill_curve_keep(&c->curve, timed.fastest, c->out, err);
}

static int by_length(const void *a, const void *b)
{
    return ((const struct question_ids *)a)->n - ((const struct question_ids *)b)->n;
}

/* Measures the time of a question for a user: the one of median length, alone, over the uncompressed cache. It is short
 * compared with the rest, so it is always measured several times. */
static int time_question(struct context_run *c, struct err *err)
{
    struct variant full;
    int n = c->work->n_questions;

    for (int q = 0; q < n; q++)
        c->question[q] = (struct question_ids){ c->work->question_ids[q].at, c->work->question_ids[q].n };
    qsort(c->question, (size_t)n, sizeof(*c->question), by_length);
    if (derive_none(c, &full, err))
        return err->code;
    struct timed timed = { 0 };
    int code = 0;
    while (timed.n < QUESTION_TIMES && !code) {
        double seconds;
        code = session_question_s(c->run->session, &full, c->question[n / 2], &seconds, err);
        if (!code)
            timed_add(&timed, seconds);
    }
    c->out->question_s[0] = timed.fastest;
    c->out->question_spread[0] = timed_spread(&timed);
    variant_release(&full);
    return code;
}

static int alloc_scratch(struct context_run *c, struct err *err)
{
    size_t v = (size_t)c->run->grid->n_configs + 1, q = (size_t)c->work->n_questions;

    c->variant = calloc(v, sizeof(*c->variant));
    c->pointer = calloc(v, sizeof(struct variant *));
    c->question = calloc(q, sizeof(*c->question));
    c->question_at = calloc(q, sizeof(*c->question_at));
    c->seed = calloc(q, sizeof(*c->seed));
    c->answer = calloc(v * q, sizeof(*c->answer));
    c->given = calloc(q, sizeof(*c->given));
    c->decode_s = calloc(v, sizeof(*c->decode_s));
    bool all =
        c->variant && c->pointer && c->question && c->question_at && c->seed && c->answer && c->given && c->decode_s;
    return all ? 0 : err_nomem(err);
}

static void release_scratch(struct context_run *c)
{
    compressor_free(c->compressor);
    work_groups_release(&c->groups);
    free(c->variant);
    free(c->pointer);
    free(c->question);
    free(c->question_at);
    free(c->seed);
    free(c->answer);
    if (c->given)
        release_given(c);
    free(c->given);
    map_release(&c->lengths);
    free(c->decode_s);
}

static int run_groups(struct context_run *c, struct err *err)
{
    if (prefill(c, err))
        return err->code;
    c->compressor = compressor_new(session_full(c->run->session), c->groups.config, c->groups.n, err);
    if (!c->compressor || time_question(c, err))
        return err->code;
    report_derived(c);
    for (int first = 0, end; first < c->groups.n; first = end) {
        end = work_group_end(&c->groups, c->work, first);
        if (run_group(c, first, end, err))
            return err->code;
    }
    return 0;
}

int run_work(const struct run *run, const struct work *w, struct table *out, struct err *err)
{
    struct context_run c = { .run = run, .work = w, .out = out };

    int code = start_table(run, w, out, err);
    if (!code)
        code = work_groups_make(&c.groups, run->grid, w, err);
    if (!code)
        code = alloc_scratch(&c, err);
    if (!code)
        code = run_groups(&c, err);
    if (!code && run->digest)
        code = model_digest_wait(run->digest, err);
    if (!code)
        code = table_set_made(out, run->made, err);
    release_scratch(&c);
    if (code)
        table_release(out);
    return code;
}

/* ---- speed -------------------------------------------------------------------------------- */

int run_speed(const struct run *run, const struct work *w, double *flop_per_s, struct err *err)
{
    const double enough = 3e10; // operations: a third of a second at 100 billion per second
    struct engine_work start = { .n_tokens = w->ids.n < 256 ? w->ids.n : 256 };
    double best = 0;

    while (start.n_tokens > 16 && engine_cost(run->engine, &start).prefill_flop > enough)
        start.n_tokens /= 2;
    struct prefill p = { .ids = w->ids.at, .n = start.n_tokens };
    for (int i = 0; i < 2; i++) { // the first one also allocates pages and builds kernels
        double seconds;
        if (session_prefill(run->session, &p, &seconds, err))
            return err->code;
        double rate = engine_cost(run->engine, &start).prefill_flop / (seconds > 1e-9 ? seconds : 1e-9);
        best = rate > best ? rate : best;
    }
    *flop_per_s = best;
    return 0;
}

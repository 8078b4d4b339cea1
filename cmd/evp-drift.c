/* evp-drift - which contexts no longer have the quality that their plan promises, with few answers.
 *
 * Compares the placed variant's answers to new questions with the uncompressed cache's: computed by evp-profile and
 * evp-score (drift_ask.c), or served and logged (drift_log.c). drift/drift_test.h has the test. Order of writing: the
 * list, then the state, then the answers are removed; so the same command goes on after an interruption.
 */
#include "drift/drift.h"
#include "base/digest.h"
#include "base/log.h"
#include "cmd/options.h"
#include "cmd/drift_ask.h"
#include "cmd/next.h"
#include "cmd/summary.h"
#include "kernels/backend.h"
#include "profiler/run/shards.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct drift_asking asking;
    const char *state, *output;
    double false_alarms;
    int per_context;
    bool facts;
} cfg = { .asking.backend = "auto", .false_alarms = 0.01, .per_context = 16 };
static struct opt_common common;

static const struct opt opts[] = {
    OPT_HEAD("Input"),
    OPT_TEXT(0, "questions", &cfg.asking.questions, "NEW", "questions; those without an answer in TABLE are new"),
    OPT_TEXT(0, "contexts", &cfg.asking.contexts, "CONTEXTS", "the contexts, as for evp-profile"),
    OPT_MANY(0, "served", &cfg.asking.served, "LOG",
             "answers that a server gave, plain or compressed, instead of computing some; may be repeated"),
    OPT_WRITES(0, "state", &cfg.state, "FILE",
               "what earlier nights found; read, and replaced; made by the first night"),
    OPT_HEAD("Decision"),
    OPT_REAL(0, "false-alarms", &cfg.false_alarms, 1e-9, 0.5,
             "share of nights that may flag a context although nothing moved, on average"),
    OPT_BOOL(0, "facts", &cfg.facts,
             "watch the facts and the conduct that answers keep (docs/profiling.md), not their similarity"),
    OPT_PER_CONTEXT(&cfg.per_context),
    OPT_PERIOD(0, "budget", &cfg.asking.budget, "SECONDS", 0, 1e12,
               "most seconds of prefill, by the times of TABLE, the most used contexts first; 0: no limit"),
    OPT_HEAD("Model and device"),
    OPT_MODEL(&cfg.asking.model),
    OPT_CHAT(&cfg.asking.chat),
    OPT_TRUNCATE(&cfg.asking.truncate),
    OPT_EMBEDDER(&cfg.asking.embedder),
    OPT_BACKEND(&cfg.asking.backend, BACKEND_NAMES),
    OPT_THREADS(&cfg.asking.threads),
    OPT_PROFILE_OPTIONS(&cfg.asking.profile_options),
    OPT_HEAD("Output"),
    OPT_OUTPUT(&cfg.output, "FILE"),
    OPT_COMMON(&common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-drift",
    .summary = "find contexts whose quality has moved since their plan",
    .operands = "TABLE MANIFEST",
    .of_users = true,
    .min_operands = 2,
    .max_operands = 2,
    .about =
        "For each compressed context in MANIFEST, both the placed variant and the uncompressed cache answer a few new "
        "questions (--questions is required). Contexts whose answers differ more than TABLE (evp-score) promised "
        "are written to FILE (--output is required).\n"
        "\n"
        "FILE is a list for evp-profile --cells: all configs of TABLE for the new questions about these contexts; an "
        "empty list, if none moved.\n"
        "\n"
        "Contexts that look fine after 4 questions cost no more; the others get up to --per-context. At most a share "
        "--false-alarms of all nights flags a context that did not move, on average. With --state, evidence adds up "
        "over nights, and no question is used twice.\n"
        "\n"
        "With --contexts, evp-profile and evp-score compute the answers in FILE.d/; after an interruption the same "
        "command goes on where it was. With --served, the answers come from a server's log.",
    .examples = "  evp-drift table.h5 manifest.jsonl --contexts contexts.jsonl \\\n"
                "      --questions tonight.jsonl --state drift.jsonl -o moved.jsonl\n"
                "  evp-drift table.h5 manifest.jsonl --questions tonight.jsonl \\\n"
                "      --served answers.jsonl.gz --state drift.jsonl -o moved.jsonl\n"
                "  evp-profile contexts.jsonl tonight.jsonl --cells moved.jsonl -o profile.h5\n",
    .opts = opts,
    .common = &common,
};

struct job {
    struct table table;
    struct manifest manifest;
    struct questions questions;
    struct drift drift;
    struct shards lock; // of FILE.d
    char **args;
    int n_args;
};

static void job_release(struct job *j)
{
    drift_release(&j->drift);
    questions_release(&j->questions);
    manifest_release(&j->manifest);
    table_release(&j->table);
    shards_close(&j->lock);
}

/* ---- messages ----------------------------------------------------------------- */

static void say_moved(const struct drift_context *c)
{
    struct json_out *w = summary_json();

    json_begin(w, NULL, '{');
    json_put_text(w, "context", c->id);
    json_put_real(w, "promised", c->promised);
    json_put_real(w, "achieved", c->n_seen ? c->sum / c->n_seen : (double)NAN);
    json_put_int(w, "answers", c->n_seen);
    json_end(w, '}');
    if (c->n_seen)
        log_warn("context '%s' moved: promised %.3f, achieved %.3f over %d answers", c->id, c->promised,
                 c->sum / c->n_seen, c->n_seen);
    else
        log_warn("context '%s' moved on an earlier night, and was not measured since", c->id);
}

static void say(const struct drift *d)
{
    const int64_t n_answers = cfg.asking.n_answers;
    int n_seen = 0, n_moved = 0;

    for (int i = 0; i < d->n; i++) {
        n_seen += d->at[i].n_seen > 0;
        n_moved += d->at[i].moved;
    }
    summary_int("compressed", d->n_compressed);
    summary_int("contexts", n_seen);
    summary_int("answers", n_answers);
    if (!cfg.asking.served.n)
        summary_int("answers_all", cfg.asking.n_all);
    summary_int("moved", n_moved);
    json_begin(summary_json(), "moved_contexts", '[');
    for (int i = 0; i < d->n; i++)
        if (d->at[i].moved)
            say_moved(&d->at[i]);
    json_end(summary_json(), ']');
    if (d->n_unknown)
        log_warn("%d compressed contexts have no prediction in the table", d->n_unknown);
    if (d->n_absent)
        log_warn("%d compressed contexts with new questions are not in CONTEXTS", d->n_absent);
    if (d->n_over_budget)
        log_info("%d contexts with new questions are not asked: the others use the budget", d->n_over_budget);
    if (d->n_unlisted)
        log_warn("%d contexts moved, but have no new question to list", d->n_unlisted);
    if (cfg.asking.served.n || n_answers == 0)
        log_info("%d of %d compressed contexts checked with %lld answers; %d moved", n_seen, d->n_compressed,
                 (long long)n_answers, n_moved);
    else
        log_info("%d of %d compressed contexts checked with %lld answers, %.1f %% of profiling all again; %d moved",
                 n_seen, d->n_compressed, (long long)n_answers, 100 * (double)n_answers / (double)cfg.asking.n_all,
                 n_moved);
}

static void say_next(const struct drift *d)
{
    const struct drift_asking *a = &cfg.asking;
    bool moved = false;
    char tokens[16];

    for (int i = 0; i < d->n; i++)
        moved |= d->at[i].moved && d->at[i].n_new;
    snprintf(tokens, sizeof(tokens), "%lld", (long long)d->table->max_new_tokens);
    if (moved)
        next_say("evp-profile", a->contexts ? a->contexts : "contexts.jsonl", a->questions, "--cells", cfg.output,
                 "--max-new-tokens", tokens, a->model ? "--model" : "", a->model ? a->model : "", "-o", "profile.h5",
                 NULL);
}

/* ---- the run -------------------------------------------------------------------- */

static int check_options(struct err *err)
{
    const struct drift_asking *a = &cfg.asking;

    if (!cfg.output || !a->questions)
        return err_set(err, ERR_USAGE, cfg.output ? "--questions is missing" : "--output is missing");
    if (!a->served.n == !a->contexts)
        return err_set(err, ERR_USAGE, "give either --contexts, to compute answers, or --served");
    if (a->served.n && a->budget > 0)
        return err_set(err, ERR_USAGE, "--served and --budget exclude each other: nothing is prefilled");
    return backend_check(a->backend, "f32", err);
}

static int read_inputs(struct job *j, char *const *path, struct err *err)
{
    struct drift *d = &j->drift;

    d->facts = cfg.facts;
    d->false_alarms = cfg.false_alarms;
    d->per_context = cfg.per_context;
    if (table_read(&j->table, path[0], TABLE_ALL, err) || manifest_read(&j->manifest, path[1], err))
        return err->code;
    if (drift_begin(d, &j->table, &j->manifest, err))
        return err_wrap(err, "'%s', '%s'", path[0], path[1]);
    if (cfg.state && drift_read_state(d, cfg.state, err))
        return err->code;
    return questions_read(&j->questions, cfg.asking.questions, err) ? err->code
                                                                    : drift_questions(d, &j->questions, err);
}

/* The list, the state, and the end of the answers: in this order, so that nothing is lost. */
static int write_outputs(struct job *j, struct err *err)
{
    struct json *table = table_lineage(&j->table);
    const char *text = j->manifest.header;
    struct json *manifest = text ? json_parse(text, strlen(text), err) : NULL;
    const struct json *const from[] = { table, manifest, j->questions.header };
    struct rows_made made = { .tool = tool.name, .args = j->args, .n_args = j->n_args, .from = from, .n_from = 3 };
    int code = drift_write_list(&j->drift, cfg.output, made, err);

    made.n_from = 0; // a state that told its whole history would grow from night to night
    if (!code && cfg.state)
        code = drift_write_state(&j->drift, cfg.state, made, err);
    if (!code && cfg.state && !cfg.asking.served.n)
        code = drift_ask_clean(&cfg.asking, err);
    json_free(table);
    json_free(manifest);
    return code;
}

static int run(struct job *j, char *const *path, struct err *err)
{
    if (check_options(err) || shards_open(&j->lock, cfg.output, SHARDS_WRITE, err))
        return err->code;
    cfg.asking.dir = j->lock.dir;
    cfg.asking.quiet = common.quiet > 0;
    if (read_inputs(j, path, err))
        return err->code;
    if (cfg.asking.served.n ? drift_served(&j->drift, &cfg.asking, err) : drift_ask(&j->drift, &cfg.asking, err))
        return err->code;
    drift_settle(&j->drift);
    if (write_outputs(j, err))
        return err->code;
    say(&j->drift);
    say_next(&j->drift);
    return 0;
}

int main(int argc, char **argv)
{
    struct err err;
    struct job job = { .lock.lock = -1, .args = argv + 1, .n_args = argc - 1 };
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    int code = run(&job, argv + first, &err);
    job_release(&job);
    return summary_end(code, cfg.asking.partial ? 1 : 0, &err);
}

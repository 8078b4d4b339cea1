/* evp-score - similarity of each answer to the reference's answer; quality per variant, utility per variant and tier.
 *
 * Reads profiles (or scored tables, and replaces their scores), unites them, has every answer embedded, and writes the
 * table that evp-plan reads. The arithmetic is in profiler/score/score.h.
 */
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "cmd/options.h"
#include "base/rows.h"
#include "cmd/backend_say.h"
#include "cmd/embedder_find.h"
#include "cmd/next.h"
#include "cmd/score_say.h"
#include "cmd/summary.h"
#include "cmd/waiting.h"
#include "embed/embed.h"
#include "formats/tiers.h"
#include "kernels/backend.h"
#include "profiler/score/serving.h"
#include "profiler/run/unvisited.h"
#include "profiler/score/exact.h"
#include "profiler/score/gold.h"
#include "profiler/score/metric.h"
#include "profiler/score/score.h"
#include "profiler/score/times.h"
#include "profiler/table/table_asked.h"

#include <stdlib.h>
#include <string.h>

static struct {
    const char *embedder, *tiers, *output, *backend, *gpu, *times;
    double alpha, prefill_tokens_per_s, question_half_life, since;
    int threads;
    struct opt_common common;
} cfg = { .alpha = 1, .backend = "auto" };

static const struct opt opts[] = {
    OPT_HEAD("Quality"),
    OPT_EMBEDDER(&cfg.embedder),
    OPT_PERIOD(0, "since", &cfg.since, "DAYS", 0, 1e6,
               "leave out questions asked more than this long before the newest one; 0: none"),
    OPT_PERIOD(0, "question-half-life", &cfg.question_half_life, "HOURS", 0, 1e6,
               "time until a question counts half, back from the newest one; 0: every question counts 1"),
    OPT_HEAD("Times and utility"),
    OPT_TIERS(&cfg.tiers),
    OPT_REAL(0, "alpha", &cfg.alpha, 0, 1e9, OPT_ALPHA_HELP),
    OPT_TEXT(0, "times", &cfg.times, "FILE",
             "times measured on the serving GPU (docs/formats/times.md), instead of the profile's"),
    OPT_GPU(&cfg.gpu, SERVING_GPUS),
    OPT_REAL(0, "prefill-tokens-per-s", &cfg.prefill_tokens_per_s, 0, 1e12,
             "prefill rate of the serving GPU, for the times of prefill and questions; 0: as profiled, or from --gpu"),
    OPT_HEAD("Device"),
    OPT_BACKEND(&cfg.backend, BACKEND_NAMES),
    OPT_THREADS(&cfg.threads),
    OPT_HEAD("Output"),
    OPT_OUTPUT(&cfg.output, "FILE"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-score",
    .summary = "score the answers of a profile: quality and utility",
    .operands = "PROFILE...",
    .of_users = true,
    .min_operands = 1,
    .max_operands = -1,
    .opts = opts,
    .common = &cfg.common,
    .about =
        "Reads any number of profiles (evp-profile), embeds all answers with all-MiniLM-L6-v2 and writes one table, "
        "FILE (--output is required).\n"
        "\n"
        "The table has the cosine of every answer to the reference's answer, its mean per context and variant over the "
        "train and the test questions, and the predicted train means; with --tiers also the time to first token and "
        "the utility (alpha * quality - TTFT) of every variant on each tier.\n"
        "\n"
        "Questions from logs know when they were asked last: --question-half-life weighs the answers to new ones more "
        "in all means, and --since leaves old ones out. Ages count back from the newest question; a question without a "
        "time is as new.\n"
        "\n"
        "Identical answers have similarity 1. The similarity of answers to different questions is measured too, and "
        "printed as the other end of the scale. Where a LongBench dataset has right answers (evp-qgen --from-dataset), "
        "its own metric scores all variants.\n"
        "\n"
        "Times come from the profiling machine. --gpu computes the prefill, question and decompression times of a "
        "serving GPU from its data sheet instead, --prefill-tokens-per-s uses a rate that you know, and --times reads "
        "times that you measured.",
    .examples = "  evp-score profile.h5 --tiers tiers.json --alpha 1 -o table.h5\n"
                "  evp-score shards/*.h5 -o table.h5\n"
                "  evp-score profile.h5 --since 60d --question-half-life 14d -o table.h5\n"
                "  evp-score profile.h5 --tiers tiers.json --gpu H100 -o table.h5\n"
                "  evp-score profile.h5 --times h100.json -o table.h5\n",
};

/* ---- reading ------------------------------------------------------------- */

static int read_profiles(struct tables *profiles, char *const *path, int n, struct err *err)
{
    char text[TABLE_DIFFERENCE];

    for (int i = 0; i < n; i++) {
        if (tables_read(profiles, path[i], err))
            return err->code;
        struct table_made made = table_made(&profiles->at[i]), first = table_made(&profiles->at[0]);
        const char *how = table_made_difference(text, &made, &first);
        if (how)
            return err_set(err, ERR_FORMAT, "'%s' cannot be united with '%s': it was made with %s", path[i], path[0],
                           how);
    }
    return 0;
}

/* Moves a single profile, without a copy. */
static int unite_profiles(struct table *t, struct tables *profiles, struct err *err)
{
    if (profiles->n > 1)
        return tables_unite(t, profiles, err);
    *t = profiles->at[0];
    profiles->n = 0;
    return 0;
}

/* Reports each context without an answer of the reference; *n_lost: how many. */
static int check_references(const struct table *t, int *n_lost, struct err *err)
{
    bool *lost = calloc((size_t)t->n_contexts, sizeof(*lost));

    if (!lost)
        return err_nomem(err);
    *n_lost = score_lost(t, lost);
    int code = *n_lost >= 0 ? 0 : err_set(err, ERR_FORMAT, "config 'none' answered no question of any context");
    for (int c = 0; c < t->n_contexts && !code; c++)
        if (lost[c])
            log_error("context '%s' gets no quality: config 'none' answered none of its questions", t->context_id[c]);
    free(lost);
    return code;
}

/* ---- quality ------------------------------------------------------------- */

/* The callback's argument of score_answers(): embeds a batch and shows the progress over all batches. */
struct embedding {
    struct embedder *embedder;
    int done; // texts of the batch
};

static void on_texts(void *arg, int done)
{
    struct embedding *e = arg;

    progress_add(done - e->done);
    e->done = done;
}

static int embed(void *arg, const char *const *text, int n, float *vector, struct err *err)
{
    struct embedding *e = arg;

    e->done = 0;
    return embedder_run(e->embedder, &(struct embed_texts){ text, n }, vector, &(struct embed_progress){ on_texts, e },
                        err);
}

static int embed_and_score(struct table *t, struct embedder *embedder, const double *weight, struct err *err)
{
    struct embedding embedding = { .embedder = embedder };
    struct score_embedder e = { embedder_width(embedder), embed, embed_cosine, &embedding };
    char digest[DIGEST_HEX];

    progress_begin("answers", (int64_t)table_n_answers(t) + (score_has_sampled(t) ? t->n_questions : 0));
    int code = score_answers(t, &e, weight, err);
    progress_end();
    if (!code)
        code = embedder_digest(embedder, digest, err);
    return code ? code : table_set_text(&t->embedder_digest, digest, err);
}

static int find_quality(struct table *t, const double *weight, struct err *err)
{
    struct backend *backend =
        backend_open(&(struct backend_options){ .name = cfg.backend, .n_threads = cfg.threads }, err);
    if (backend)
        backend_say(backend, cfg.threads);
    struct embedder *embedder = backend ? embedder_find(cfg.embedder, backend, err) : NULL;
    int code = embedder ? embed_and_score(t, embedder, weight, err) : err->code;

    embedder_close(embedder);
    if (backend)
        backend->close(backend);
    return code;
}

/* ---- the result ---------------------------------------------------------- */

/* The member "inputs". */
static int put_inputs(struct buf *out, const struct tables *profiles, struct err *err)
{
    struct json_out w = { .buf = out };
    char tiers_digest[DIGEST_HEX], times_digest[DIGEST_HEX];

    if ((cfg.tiers && digest_file(cfg.tiers, tiers_digest, err)) ||
        (cfg.times && digest_file(cfg.times, times_digest, err)))
        return err->code;
    json_begin(&w, NULL, '{');
    json_begin(&w, "profiles", '[');
    for (int i = 0; i < profiles->n; i++)
        json_put_text(&w, NULL, profiles->at[i].digest);
    json_end(&w, ']');
    if (cfg.tiers)
        json_put_text(&w, "tiers", tiers_digest);
    if (cfg.times)
        json_put_text(&w, "times", times_digest);
    json_end(&w, '}');
    return buf_failed(out) ? err_nomem(err) : 0;
}

/* The table's lineage (docs/formats/table.md). A profile without a lineage is left out. */
static int put_lineage(struct buf *out, const struct tables *profiles, char **args, int n_args, struct err *err)
{
    struct buf inputs = { 0 };
    struct json **from = calloc((size_t)profiles->n + 1, sizeof(*from));
    int code = from ? put_inputs(&inputs, profiles, err) : err_nomem(err);

    for (int i = 0; from && i < profiles->n; i++)
        from[i] = table_lineage(&profiles->at[i]);
    struct rows_made made = { .tool = tool.name,
                              .args = args,
                              .n_args = n_args,
                              .inputs = buf_str(&inputs),
                              .from = (const struct json *const *)from,
                              .n_from = from ? profiles->n : 0 };
    rows_made_to_text(&made, out);
    for (int i = 0; i < made.n_from; i++)
        json_free(from[i]);
    free(from);
    buf_release(&inputs);
    return code ? code : buf_failed(out) ? err_nomem(err) : 0;
}

/* ---- the whole ----------------------------------------------------------- */

/* Unites the profiles to one table with its lineage. */
static int make_table(struct table *t, int argc, char **argv, int first, struct err *err)
{
    struct tables profiles = { 0 };
    struct buf lineage = { 0 };
    int code = read_profiles(&profiles, argv + first, argc - first, err);

    if (!code)
        code = put_lineage(&lineage, &profiles, argv + 1, argc - 1, err);
    if (!code)
        code = unite_profiles(t, &profiles, err);
    tables_release(&profiles);
    if (!code)
        code = table_set_text(&t->lineage, buf_str(&lineage), err);
    buf_release(&lineage);
    return code;
}

static int set_measured_times(struct table *t, struct err *err)
{
    struct times times = { 0 };
    int n_longer;

    if (cfg.gpu || cfg.prefill_tokens_per_s > 0)
        return err_set(err, ERR_USAGE, "--times excludes --gpu and --prefill-tokens-per-s: the file has all times");
    int code = times_read(&times, cfg.times, err);
    if (!code && times_apply(t, &times, &n_longer, err))
        code = err_wrap(err, "'%s'", cfg.times);
    if (!code)
        log_info("times come from '%s'%s%s", cfg.times, *times.name ? ": " : "", times.name);
    if (!code && n_longer)
        log_warn("%d contexts are longer than the %lld tokens that '%s' measured: their prefill times are extrapolated "
                 "in a straight line, which is too short",
                 n_longer, (long long)times.prefill.at[times.prefill.n - 1].n_tokens, cfg.times);
    times_release(&times);
    return code;
}

static int set_times(struct table *t, struct err *err)
{
    struct serving s = { .prefill_tokens_per_s = cfg.prefill_tokens_per_s };
    struct serving_gpu given;

    if (cfg.times)
        return set_measured_times(t, err);
    if (cfg.gpu) {
        s.gpu = serving_find(cfg.gpu, &given, err);
        if (!s.gpu)
            return err_wrap(err, "--gpu");
    }
    if (serving_apply(t, &s, err))
        return err->code;
    if (s.gpu)
        log_info("times are computed for %s from the %s, not measured", s.gpu->name, s.gpu->source);
    score_say_noise(t);
    return 0;
}

static int predict(struct table *t, const double *weight, struct err *err)
{
    int code = score_predict(t, err);

    return !code && t->predicted_facts ? exact_predict(t, weight, err) : code;
}

/* All scores, questions weighed by their age. */
static int score_all(struct table *t, const struct tiers *tiers, struct err *err)
{
    double *weight = table_asked_weights(t, cfg.question_half_life * 3600, err);
    int code = weight ? 0 : err->code;

    if (!code && (find_quality(t, weight, err) || gold_score(t, err) || exact_score(t, weight, err) ||
                  predict(t, weight, err) || (tiers->n && score_tiers(t, tiers, cfg.alpha, err))))
        code = err->code;
    free(weight);
    return code;
}

static int score(struct table *t, const struct tiers *tiers, int *n_lost, struct err *err)
{
    unvisited_times(t, t);
    if ((cfg.since > 0 && table_asked_since(t, cfg.since * 86400, err)) || set_times(t, err) ||
        check_references(t, n_lost, err) || table_alloc_scores(t, tiers->n ? tiers->n + 1 : 0, err) ||
        score_all(t, tiers, err) || table_write(t, cfg.output, err))
        return err->code;
    summary_int("contexts", t->n_contexts);
    summary_int("contexts_without_quality", *n_lost);
    score_say(t, cfg.common.verbose > 0 ? SCORE_ALL : SCORE_BRIEF);
    if (*n_lost)
        log_error("%d of %d contexts have no quality", *n_lost, t->n_contexts);
    if (cfg.tiers || file_exists("tiers.json"))
        next_say("evp-plan", cfg.output, "--tiers", cfg.tiers ? cfg.tiers : "tiers.json", "-o", "manifest.jsonl", NULL);
    else
        next_say("evp-tiers", "--tier", "name=dram,uri=/dev/shm/evp,capacity=1G", "-o", "tiers.json", NULL);
    return 0;
}

static int run(int argc, char **argv, int first, int *n_lost, struct err *err)
{
    struct tiers tiers = { 0 };
    struct table table = { 0 };

    if (!cfg.output)
        return err_set(err, ERR_USAGE, "--output is missing");
    int code = backend_check(cfg.backend, "f32", err);
    if (!code && cfg.tiers)
        code = tiers_read(&tiers, cfg.tiers, err);
    if (!code)
        code = make_table(&table, argc, argv, first, err);
    if (!code)
        code = score(&table, &tiers, n_lost, err);
    table_release(&table);
    tiers_release(&tiers);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;

    wait_briefly(argv);
    int n_lost = 0, first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    int code = run(argc, argv, first, &n_lost, &err);
    return summary_end(code, n_lost ? 1 : 0, &err);
}

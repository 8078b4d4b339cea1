/* evp-score - how much like the reference's each answer is; quality per variant, utility per variant and tier.
 *
 * Profiles (or tables scored before: their scores are replaced) are put together, every answer is embedded once, and
 * the table with the groups that evp-plan reads is written.
 */
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/opt.h"
#include "embed/embed.h"
#include "kernels/backend.h"
#include "loader/formats/tiers.h"
#include "planner/utility.h"
#include "profiler/score.h"
#include "profiler/table.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *embedder, *tiers, *output, *backend;
    double alpha;
    int threads;
    struct opt_common common;
} cfg = { .alpha = 1, .backend = "auto" };

static const struct opt opts[] = {
    OPT_HEAD("Quality"),
    OPT_TEXT(0, "embedder", &cfg.embedder, "DIR", "folder of all-MiniLM-L6-v2; by default that of scripts/models"),
    OPT_HEAD("Utility"),
    OPT_TIERS(&cfg.tiers),
    OPT_REAL(0, "alpha", &cfg.alpha, 0, 1e9, OPT_ALPHA_HELP),
    OPT_HEAD("Computing"),
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
    .min_operands = 1,
    .max_operands = -1,
    .opts = opts,
    .common = &cfg.common,
    .about =
        "Reads what evp-profile wrote (any number of shards), embeds all answers with all-MiniLM-L6-v2 and writes one "
        "table, FILE (--output is required), with the cosine of every answer to the reference's, its mean per context "
        "and variant over the train and the test questions, and with --tiers the time to first token and the utility "
        "(alpha * quality - TTFT) of every variant on each tier. Identical answers have similarity 1.",
    .examples = "  evp-score profile.h5 --tiers tiers.json --alpha 1 -o table.h5\n"
                "  evp-score shards/*.h5 -o table.h5\n",
};

/* ---- reading ------------------------------------------------------------- */

struct profiles {
    struct table *at;
    char (*digest)[DIGEST_HEX]; // of the files
    char *const *path;
    int n;
};

static void profiles_release(struct profiles *p)
{
    for (int i = 0; p->at && i < p->n; i++)
        table_release(&p->at[i]);
    free(p->at);
    free(p->digest);
}

static int profiles_read(struct profiles *p, char *const *path, int n, struct err *err)
{
    *p = (struct profiles){ .path = path, .n = n };
    p->at = calloc((size_t)n, sizeof(*p->at));
    p->digest = calloc((size_t)n, sizeof(*p->digest));
    if (!p->at || !p->digest)
        return err_nomem(err);
    for (int i = 0; i < n; i++) {
        if (table_read(&p->at[i], path[i], TABLE_ALL, err))
            return err->code;
        memcpy(p->digest[i], p->at[i].digest, DIGEST_HEX);
        if (strcmp(p->at[i].model_digest, p->at[0].model_digest) != 0)
            return err_set(err, ERR_FORMAT, "'%s' is of model '%s', '%s' of another one, '%s'", path[0], p->at[0].model,
                           path[i], p->at[i].model);
    }
    return 0;
}

/* One table of all; the profiles are empty or not needed afterwards. */
static int profiles_unite(struct table *t, struct profiles *p, struct err *err)
{
    if (p->n == 1) {
        *t = p->at[0];
        p->at[0] = (struct table){ 0 };
        return 0;
    }
    const struct table **from = calloc((size_t)p->n, sizeof(*from));
    if (!from)
        return err_nomem(err);
    for (int i = 0; i < p->n; i++)
        from[i] = &p->at[i];
    int code = table_unite(t, from, p->n, err);
    free(from);
    return code;
}

/* Counts the contexts without any answer of the reference, each of which is reported. */
static int check_references(const struct table *t, int *lost, struct err *err)
{
    char *has = calloc((size_t)t->n_contexts, 1);

    if (!has)
        return err_nomem(err);
    for (int q = 0; q < t->n_questions; q++)
        if (t->answer_n_tokens[(size_t)q * (size_t)t->n_configs] >= 0)
            has[t->question_context[q]] = 1;
    *lost = 0;
    for (int c = 0; c < t->n_contexts; c++)
        *lost += !has[c];
    for (int c = 0; c < t->n_contexts && *lost < t->n_contexts; c++)
        if (!has[c])
            log_error("context '%s' has no answers of the reference, so its versions get no quality", t->context_id[c]);
    free(has);
    return *lost < t->n_contexts ? 0
                                 : err_set(err, ERR_FORMAT, "no context has answers of the reference to compare with");
}

/* ---- similarity ---------------------------------------------------------- */

static struct embedder *open_embedder(struct backend *backend, struct err *err)
{
    if (cfg.embedder)
        return embedder_open(cfg.embedder, backend, err);
    char *models = file_models_dir(), *dir = models ? file_join(models, "all-MiniLM-L6-v2") : NULL;
    struct embedder *e = NULL;
    if (!dir)
        err_nomem(err);
    else if (!file_is_dir(dir))
        err_set(err, ERR_IO, "no embedder in '%s': run scripts/models, or name a folder with --embedder", dir);
    else
        e = embedder_open(dir, backend, err);
    free(models);
    free(dir);
    return e;
}

struct bar {
    int done; // of the run in progress
};

static void move_bar(void *arg, int done)
{
    struct bar *bar = arg;

    progress_add(done - bar->done);
    bar->done = done;
}

/* So many answers are embedded at a time; their vectors are 100 MB. Equal answers come from variants of one question.
 */
enum { ANSWERS_AT_ONCE = 1 << 16 };

/* cosine (Q, V): of every answer to config 0's; questions from..to of the table, vector: room for their answers. */
static int embed_questions(const struct table *t, struct embedder *e, int from, int to, float *vector, float *cosine,
                           struct err *err)
{
    size_t V = (size_t)t->n_configs, width = (size_t)embedder_width(e);
    const char *const *text = (const char *const *)t->answer_text + (size_t)from * V;
    struct embed_texts texts = { text, (int)((size_t)(to - from) * V) };
    struct bar bar = { 0 };
    struct embed_progress progress = { move_bar, &bar };

    if (embedder_run(e, &texts, vector, &progress, err))
        return err->code;
    for (size_t q = 0; q < (size_t)(to - from); q++)
        for (size_t i = q * V; i < (q + 1) * V; i++)
            cosine[(size_t)from * V + i] = embed_cosine(vector + i * width, vector + q * V * width, (int)width);
    return 0;
}

static int embed_answers(const struct table *t, struct embedder *e, float *cosine, struct err *err)
{
    int at_once = ANSWERS_AT_ONCE / t->n_configs;
    at_once = at_once < 1 ? 1 : at_once > t->n_questions ? t->n_questions : at_once;
    float *vector = calloc((size_t)at_once * (size_t)t->n_configs, (size_t)embedder_width(e) * sizeof(*vector));
    int code = vector ? 0 : err_nomem(err);

    progress_begin("answers", (int64_t)t->n_questions * t->n_configs);
    for (int q = 0; q < t->n_questions && !code; q += at_once) {
        int to = t->n_questions - q < at_once ? t->n_questions : q + at_once;
        code = embed_questions(t, e, q, to, vector, cosine, err);
    }
    progress_end();
    free(vector);
    return code;
}

static int score_answers(struct table *t, struct err *err)
{
    struct backend *backend = backend_open(cfg.backend, cfg.threads, err);
    struct embedder *e = backend ? open_embedder(backend, err) : NULL;
    float *cosine = calloc((size_t)t->n_questions * (size_t)t->n_configs, sizeof(*cosine));
    char digest[DIGEST_HEX];
    int code = e ? 0 : err->code;

    if (!code && !cosine)
        code = err_nomem(err);
    if (!code)
        code = embed_answers(t, e, cosine, err);
    if (!code)
        code = embedder_digest(e, digest, err);
    if (!code)
        code = table_set_text(&t->embedder_digest, digest, err);
    if (!code) {
        score_similarity(t, cosine);
        code = score_quality(t, err);
    }
    free(cosine);
    embedder_close(e);
    if (backend)
        backend->close(backend);
    return code;
}

/* ---- utility ------------------------------------------------------------- */

/* One variant on every tier, and, last, not stored at all: that is config 0 only. */
static void score_cell(struct table *t, const struct tiers *tiers, int context, int config)
{
    size_t cell = (size_t)context * (size_t)t->n_configs + (size_t)config, at = cell * (size_t)t->n_tiers;
    double question_s = t->question_s[context];

    for (int d = 0; d < tiers->n && t->cell_bytes[cell] >= 0; d++) {
        struct tier_speed speed = { tiers->at[d].latency_s, tiers->at[d].read_bytes_per_s };
        t->ttft_s[at + (size_t)d] = ttft_stored(speed, t->cell_bytes[cell], t->decompress_s[cell], question_s);
        t->utility[at + (size_t)d] = utility(cfg.alpha, t->quality_train[cell], t->ttft_s[at + (size_t)d], 1);
    }
    if (config != 0)
        return;
    at += (size_t)tiers->n;
    t->ttft_s[at] = ttft_recompute(t->prefill_s[context], question_s);
    t->utility[at] = utility(cfg.alpha, 1, t->ttft_s[at], 1);
}

/* The names are borrowed from tiers, which outlives the table. */
static void score_tiers(struct table *t, struct tiers *tiers)
{
    static char recompute[] = "recompute";

    for (int d = 0; d < tiers->n; d++)
        t->tier_name[d] = tiers->at[d].name;
    t->tier_name[tiers->n] = recompute;
    for (int c = 0; c < t->n_contexts; c++)
        for (int v = 0; v < t->n_configs; v++)
            score_cell(t, tiers, c, v);
}

/* ---- the result ---------------------------------------------------------- */

static void put_inputs(struct json_out *w, const struct profiles *p, const char *tiers_digest)
{
    json_begin(w, "inputs", '{');
    json_begin(w, "profiles", '[');
    for (int i = 0; i < p->n; i++)
        json_put_text(w, NULL, p->digest[i]);
    json_end(w, ']');
    if (cfg.tiers)
        json_put_text(w, "tiers", tiers_digest);
    json_end(w, '}');
}

/* How the profiles were made; a profile that does not say it in JSON is passed over. */
static void put_upstream(struct json_out *w, const struct profiles *p)
{
    json_begin(w, "from", '[');
    for (int i = 0; i < p->n; i++) {
        struct err ignored;
        struct json *lineage = json_parse(p->at[i].lineage, strlen(p->at[i].lineage), &ignored);
        if (lineage)
            json_put_node(w, NULL, lineage);
        json_free(lineage);
    }
    json_end(w, ']');
}

/* The table's lineage: docs/formats/table.md. */
static int describe_run(struct buf *text, const struct profiles *p, char **args, int n_args, struct err *err)
{
    struct json_out w = { .buf = text };
    char tiers_digest[DIGEST_HEX];

    if (cfg.tiers && digest_file(cfg.tiers, tiers_digest, err))
        return err->code;
    json_begin(&w, NULL, '{');
    json_put_text(&w, "tool", tool.name);
    json_begin(&w, "args", '[');
    for (int i = 0; i < n_args; i++)
        json_put_text(&w, NULL, args[i]);
    json_end(&w, ']');
    put_inputs(&w, p, tiers_digest);
    put_upstream(&w, p);
    json_end(&w, '}');
    return buf_failed(text) ? err_nomem(err) : 0;
}

static const char *text_quality(char out[16], double quality)
{
    snprintf(out, 16, "%.4f", quality);
    return isnan(quality) ? "-" : out;
}

static void show(const struct table *t)
{
    char train[16], test[16];
    int width = 6;

    for (int v = 0; v < t->n_configs; v++)
        width = (int)strlen(t->config_name[v]) > width ? (int)strlen(t->config_name[v]) : width;
    log_info("mean quality over %d contexts", t->n_contexts);
    log_info("%-*s %8s %8s %9s", width, "config", "train", "test", "size");
    for (int v = 0; v < t->n_configs; v++)
        log_info("%-*s %8s %8s %8.2fx", width, t->config_name[v],
                 text_quality(train, score_mean(t, t->quality_train, v)),
                 text_quality(test, score_mean(t, t->quality_test, v)), 1 / score_mean(t, t->size_frac, v));
}

/* ---- the whole ----------------------------------------------------------- */

static int score(struct table *t, struct tiers *tiers, int *lost, struct err *err)
{
    if (check_references(t, lost, err))
        return err->code;
    if ((int64_t)t->n_configs * t->n_questions > INT_MAX)
        return err_set(err, ERR_FORMAT, "%d questions with %d configs are too many answers", t->n_questions,
                       t->n_configs);
    if (table_alloc_scores(t, tiers->n ? tiers->n + 1 : 0, err) || score_answers(t, err))
        return err->code;
    if (tiers->n)
        score_tiers(t, tiers);
    if (table_write(t, cfg.output, err))
        return err->code;
    show(t);
    return 0;
}

static int run(int argc, char **argv, int first, int *lost, struct err *err)
{
    struct profiles profiles = { 0 };
    struct tiers tiers = { 0 };
    struct table table = { 0 };
    struct buf lineage = { 0 };

    if (!cfg.output)
        return err_set(err, ERR_USAGE, "--output is missing");
    int code = cfg.tiers ? tiers_read(&tiers, cfg.tiers, err) : 0;
    if (!code)
        code = profiles_read(&profiles, argv + first, argc - first, err);
    if (!code)
        code = describe_run(&lineage, &profiles, argv + 1, argc - 1, err);
    if (!code)
        code = profiles_unite(&table, &profiles, err);
    profiles_release(&profiles);
    if (!code)
        code = table_set_text(&table.lineage, buf_str(&lineage), err);
    if (!code)
        code = score(&table, &tiers, lost, err);
    buf_release(&lineage);
    table_release(&table);
    tiers_release(&tiers);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;
    int lost = 0, first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    if (run(argc, argv, first, &lost, &err))
        return opt_finish(log_failure(&err));
    if (lost)
        log_error("%d contexts have no quality", lost);
    return opt_finish(lost ? 1 : 0);
}

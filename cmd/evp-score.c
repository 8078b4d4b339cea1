/* evp-score - how similar each answer is to the reference's; quality per variant, utility per variant and tier.
 *
 * Reads profiles (or tables scored before, whose scores it replaces), unites them, has every answer embedded, and
 * writes the table that evp-plan reads. The arithmetic is profiler/score.h.
 */
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/rows.h"
#include "embed/embed.h"
#include "kernels/backend.h"
#include "loader/formats/tiers.h"
#include "profiler/score.h"

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

static int read_profiles(struct tables *profiles, char *const *path, int n, struct err *err)
{
    char text[TABLE_DIFFERENCE];

    for (int i = 0; i < n; i++) {
        if (tables_read(profiles, path[i], err))
            return err->code;
        struct table_made made = table_made(&profiles->at[i]), first = table_made(&profiles->at[0]);
        const char *how = table_made_difference(text, &made, &first);
        if (how)
            return err_set(err, ERR_FORMAT, "'%s' does not go with '%s': it was made with %s", path[i], path[0], how);
    }
    return 0;
}

/* One table of all. A single profile is taken as it is. */
static int unite_profiles(struct table *t, struct tables *profiles, struct err *err)
{
    if (profiles->n > 1)
        return tables_unite(t, profiles, err);
    *t = profiles->at[0];
    profiles->n = 0;
    return 0;
}

/* Reports each context that the reference did not answer; *n_lost: how many. */
static int check_references(const struct table *t, int *n_lost, struct err *err)
{
    bool *lost = calloc((size_t)t->n_contexts, sizeof(*lost));

    if (!lost)
        return err_nomem(err);
    *n_lost = score_lost(t, lost);
    int code =
        *n_lost < t->n_contexts ? 0 : err_set(err, ERR_FORMAT, "config 'none' answered no question of any context");
    for (int c = 0; c < t->n_contexts && !code; c++)
        if (lost[c])
            log_error("context '%s' gets no quality: config 'none' answered none of its questions", t->context_id[c]);
    free(lost);
    return code;
}

/* ---- quality ------------------------------------------------------------- */

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

/* What score_answers() asks for: vectors of a batch, with the progress of all batches. */
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

static int embed_and_score(struct table *t, struct embedder *embedder, struct err *err)
{
    struct embedding embedding = { .embedder = embedder };
    struct score_embedder e = { embedder_width(embedder), embed, embed_cosine, &embedding };
    char digest[DIGEST_HEX];

    progress_begin("answers", (int64_t)table_n_answers(t));
    int code = score_answers(t, &e, err);
    progress_end();
    if (!code)
        code = embedder_digest(embedder, digest, err);
    return code ? code : table_set_text(&t->embedder_digest, digest, err);
}

static int find_quality(struct table *t, struct err *err)
{
    struct backend *backend =
        backend_open(&(struct backend_options){ .name = cfg.backend, .n_threads = cfg.threads }, err);
    struct embedder *embedder = backend ? open_embedder(backend, err) : NULL;
    int code = embedder ? embed_and_score(t, embedder, err) : err->code;

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
    char tiers_digest[DIGEST_HEX];

    if (cfg.tiers && digest_file(cfg.tiers, tiers_digest, err))
        return err->code;
    json_begin(&w, NULL, '{');
    json_begin(&w, "profiles", '[');
    for (int i = 0; i < profiles->n; i++)
        json_put_text(&w, NULL, profiles->at[i].digest);
    json_end(&w, ']');
    if (cfg.tiers)
        json_put_text(&w, "tiers", tiers_digest);
    json_end(&w, '}');
    return buf_failed(out) ? err_nomem(err) : 0;
}

/* The table's lineage (docs/formats/table.md). A profile that does not say how it was made is left out. */
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

static const char *text_quality(char out[16], double quality)
{
    snprintf(out, 16, "%.4f", quality);
    return isnan(quality) ? "-" : out;
}

static void show_means(const struct table *t)
{
    char train[16], test[16];
    int width = 6;

    for (int v = 0; v < t->n_configs; v++)
        width = (int)strlen(t->config_name[v]) > width ? (int)strlen(t->config_name[v]) : width;
    log_info("mean quality over %d contexts", t->n_contexts);
    log_info("%-*s %8s %8s %9s", width, "config", "train", "test", "size");
    for (int v = 0; v < t->n_configs; v++)
        log_info("%-*s %8s %8s %8.2fx", width, t->config_name[v],
                 text_quality(train, table_mean(t, t->quality_train, v)),
                 text_quality(test, table_mean(t, t->quality_test, v)), 1 / table_mean(t, t->size_frac, v));
}

/* ---- the whole ----------------------------------------------------------- */

/* The profiles as one table, with its lineage. */
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

static int score(struct table *t, const struct tiers *tiers, int *n_lost, struct err *err)
{
    if (check_references(t, n_lost, err) || table_alloc_scores(t, tiers->n ? tiers->n + 1 : 0, err) ||
        find_quality(t, err) || (tiers->n && score_tiers(t, tiers, cfg.alpha, err)) || table_write(t, cfg.output, err))
        return err->code;
    show_means(t);
    if (*n_lost)
        log_error("%d of %d contexts have no quality", *n_lost, t->n_contexts);
    return 0;
}

static int run(int argc, char **argv, int first, int *n_lost, struct err *err)
{
    struct tiers tiers = { 0 };
    struct table table = { 0 };

    if (!cfg.output)
        return err_set(err, ERR_USAGE, "--output is missing");
    int code = cfg.tiers ? tiers_read(&tiers, cfg.tiers, err) : 0;
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
    int n_lost = 0, first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    if (run(argc, argv, first, &n_lost, &err))
        return opt_finish(log_failure(&err));
    return opt_finish(n_lost ? 1 : 0);
}

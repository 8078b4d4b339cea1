/* evp-pack - makes the compressed KV payloads that a manifest calls for.
 *
 * Checks first all that needs no computing: the model, every context's text, every config, and which payloads exist.
 * Then prefills each context that lacks its payload, once. If no payload is missing, the weights are not even read.
 */
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "cmd/options.h"
#include "base/parse.h"
#include "cmd/backend_say.h"
#include "cmd/interrupt.h"
#include "show/model_say.h"
#include "cmd/next.h"
#include "cmd/pack_placed.h"
#include "cmd/pack_prune.h"
#include "cmd/summary.h"
#include "cmd/waiting.h"
#include "engine/transformer/engine.h"
#include "formats/context.h"
#include "formats/manifest.h"
#include "formats/operation.h"
#include "methods/kvzap.h"
#include "methods/method_plugin.h"
#include "loader/store/index.h"
#include "methods/method.h"
#include "variants/packed_payload.h"
#include "variants/sizes.h"
#include "variants/variant_error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model, *chat, *out, *backend, *dtype, *tiers, *name_space, *plugin, *kvzap;
    int threads;
    uint64_t memory;
    struct shard shard;
    bool prune, dry_run, list;
    struct opt_common common;
} cfg = { .out = "payloads", .backend = "auto", .dtype = "auto", .shard = { 1, 1 } };

static const struct opt opts[] = {
    OPT_HEAD("Choice"),
    OPT_TIERS(&cfg.tiers),
    OPT_NAMESPACE(&cfg.name_space),
    OPT_SHARD(&cfg.shard),
    OPT_PLUGIN(&cfg.plugin),
    OPT_KVZAP(&cfg.kvzap),
    OPT_HEAD("Model and device"),
    OPT_MODEL(&cfg.model),
    OPT_CHAT(&cfg.chat),
    OPT_BACKEND(&cfg.backend, BACKEND_NAMES),
    OPT_DTYPE(&cfg.dtype, BACKEND_DTYPES),
    OPT_THREADS(&cfg.threads),
    OPT_MEMORY(&cfg.memory),
    OPT_HEAD("Output"),
    OPT_OUTPUT(&cfg.out, "DIR"),
    OPT_BOOL(0, "prune", &cfg.prune, "first remove from DIR the payloads that MANIFEST does not name"),
    OPT_DRY_RUN(&cfg.dry_run),
    OPT_BOOL(0, "list", &cfg.list, "print what would be done, a line per payload, and stop"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-pack",
    .summary = "make the compressed KV payloads that a manifest calls for",
    .operands = "MANIFEST CONTEXTS",
    .of_users = true,
    .min_operands = 2,
    .max_operands = 2,
    .about =
        "Prefills each context that the manifest (evp-plan) puts on a tier, compresses its KV cache as the manifest "
        "says, and writes it as a safetensors file into DIR. MODEL must be the model of the manifest.\n"
        "\n"
        "A payload that DIR already has, whole and of the same model, text and config, is not made again. With --tiers "
        "a payload that a tier holds is not made either: evp-load takes it from there. A tier that cannot be read is "
        "reported, and contexts that the manifest puts there are left out.\n"
        "\n"
        "A context that cannot be packed is reported and the others go on; if one cannot be packed or is left out, the "
        "status is 1.\n"
        "\n"
        "--prune removes nothing if MANIFEST cannot be read or is of another model. It takes a file for a payload if "
        "its name ends as evp-pack's do, with 16 digits and '.safetensors'; other files, links and folders stay.\n"
        "\n"
        "--list prints 'make', 'there', 'placed', 'skip' or 'prune', bytes, context, config and file, separated by "
        "tabs.",
    .examples = "  evp-pack manifest.jsonl contexts.jsonl -o payloads/\n"
                "  evp-pack manifest.jsonl contexts.jsonl --tiers tiers.json -o payloads/\n"
                "  evp-pack manifest.jsonl contexts.jsonl \\\n"
                "      --shard $SLURM_ARRAY_TASK_ID/8 -o /shared/payloads\n",
    .opts = opts,
    .common = &cfg.common,
};

/* A payload to be made. */
struct job {
    const struct placement *placement;
    struct config config;
    struct tokens ids;
    char *path;
};

struct pack {
    struct manifest manifest;
    struct contexts contexts;
    const char *manifest_path, *contexts_path;
    struct model *model;
    struct tokenizer *tokenizer;
    char model_digest[DIGEST_HEX];
    struct job *job; // (n_jobs): missing payloads
    int n_jobs;
    int64_t n_tokens;                             // of all jobs
    struct placed placed;                         // what the tiers of --tiers hold
    int n_written, n_present, n_placed, n_failed; // payloads
    int n_skipped;                                // payloads for tiers that cannot be read
    double bytes;                                 // written
    int64_t tokens_before, tokens_shown;          // of the finished jobs; shown by the progress bar
};

static void job_release(struct job *j)
{
    tokens_release(&j->ids);
    free(j->path);
}

static void pack_release(struct pack *p)
{
    for (int i = 0; i < p->n_jobs; i++)
        job_release(&p->job[i]);
    free(p->job);
    placed_release(&p->placed);
    tokenizer_free(p->tokenizer);
    model_close(p->model);
    contexts_release(&p->contexts);
    manifest_release(&p->manifest);
}

/* ---- the jobs ------------------------------------------------------------ */

static int open_model(struct pack *p, const char *path, struct err *err)
{
    p->model = model_open(path, err);
    if (!p->model || model_digest(p->model, p->model_digest, err))
        return err->code;
    if (strcmp(p->model_digest, p->manifest.model_digest) != 0)
        return err_set(err, ERR_FORMAT, "'%s' was made for another model than '%s'", p->manifest_path, path);
    if (kvzap_check(p->model_digest, err))
        return err->code;
    p->tokenizer = tokenizer_open_chat(p->model, cfg.chat, err);
    model_say_date(cfg.model, p->tokenizer);
    return p->tokenizer ? 0 : err->code;
}

/* Tokenises the context; its tokens must be the tokens in the plan. evp-profile may have cut them. */
static int get_tokens(struct pack *p, struct job *j, struct err *err)
{
    const struct placement *at = j->placement;
    int row = map_find(&p->contexts.ids, at->id, strlen(at->id));
    struct prompt_ids context;
    char digest[DIGEST_HEX];

    if (row < 0)
        return err_set(err, ERR_FORMAT, "not in '%s'", p->contexts_path);
    if (tokenizer_context_row(p->tokenizer, &p->contexts.at[row], &context, err))
        return err->code;
    j->ids = prompt_ids_take(&context);
    if (at->n_tokens > 0 && at->n_tokens < j->ids.n)
        j->ids.n = (int)at->n_tokens;
    if (digest_tokens(j->ids.at, j->ids.n, digest, err))
        return err->code;
    if (strcmp(digest, at->token_digest) != 0)
        return err_set(err, ERR_FORMAT, "its text, or the chat template, is not the one '%s' was made for",
                       p->manifest_path);
    return 0;
}

/* Does the job's file exist, whole and of the same model, tokens and config? */
static bool is_present(const struct pack *p, const struct job *j)
{
    struct packed_payload there;
    struct err err;

    if (!file_exists(j->path))
        return false;
    if (packed_payload_open(&there, j->path, PAYLOAD_WHOLE, &err)) {
        log_warn("%s; the payload is made again", err.msg);
        return false;
    }
    struct cached found = { there.file.token_digest, there.config.name, there.file.model_digest, -1, NULL };
    struct cached planned = { j->placement->token_digest, j->config.name, p->model_digest, -1, NULL };
    bool same = cached_same(&found, &planned);
    packed_payload_close(&there);
    return same;
}

/* A payload must take the bytes that were planned. */
static int check_bytes(const struct pack *p, const struct job *j, int64_t bytes, struct err *err)
{
    if (bytes == j->placement->bytes)
        return 0;
    return err_set(err, ERR_FORMAT, "it takes %lld bytes under '%s', not %lld as '%s' says", (long long)bytes,
                   j->config.name, (long long)j->placement->bytes, p->manifest_path);
}

/* Parses the planned config. The model must support it; a size that is known in advance is checked here. */
static int get_config(const struct pack *p, struct job *j, struct err *err)
{
    const struct kv_shape any = model_kv_shape(model_config(p->model), DTYPE_F32), shape = kv_shape_of(&any, j->ids.n);

    if (config_parse(&j->config, j->placement->config, err) || config_check(&j->config, &shape, err) ||
        kvzap_check_config(&j->config, &shape, err))
        return err->code;
    int64_t bytes = config_bytes_known(&j->config, &shape, j->ids.n);
    return bytes < 0 ? 0 : check_bytes(p, j, bytes, err);
}

static int job_init(struct pack *p, struct job *j, struct err *err)
{
    if (get_tokens(p, j, err) || get_config(p, j, err))
        return err->code;
    j->path = file_join(cfg.out, j->placement->payload);
    return j->path ? 0 : err_nomem(err);
}

/* Reports and counts the failure of one context. */
static void count_failure(struct pack *p, const struct placement *at, const struct err *err)
{
    log_error("context '%s': %s", at->id, err->msg);
    p->n_failed++;
}

static void list_job(const struct job *j, const char *what)
{
    if (cfg.list)
        printf("%s\t%lld\t%s\t%s\t%s\n", what, (long long)j->placement->bytes, j->placement->id, j->config.name,
               j->placement->payload);
}

static int list_jobs(struct pack *p, struct err *err)
{
    p->job = calloc((size_t)p->manifest.n + 1, sizeof(*p->job));
    if (!p->job)
        return err_nomem(err);
    for (int i = 0; i < p->manifest.n; i++) {
        struct job j = { .placement = &p->manifest.at[i] };
        if (j.placement->tier < 0 || p->manifest.tiers.at[j.placement->tier].read_only || !shard_has(cfg.shard, i))
            continue;
        if (job_init(p, &j, err)) {
            count_failure(p, j.placement, err);
        } else if (is_present(p, &j)) {
            p->n_present++;
            list_job(&j, "there");
        } else if (placed_has(&p->placed, j.placement->token_digest, j.config.name)) {
            p->n_placed++;
            list_job(&j, "placed");
        } else if (placed_is_away(&p->placed, &p->manifest.tiers.at[j.placement->tier])) {
            p->n_skipped++;
            list_job(&j, "skip");
        } else {
            list_job(&j, "make");
            p->n_tokens += j.ids.n;
            p->job[p->n_jobs++] = j;
            continue;
        }
        job_release(&j);
    }
    return 0;
}

/* ---- the work ------------------------------------------------------------ */

static void show_tokens(struct pack *p, int tokens_done)
{
    int64_t now = p->tokens_before + tokens_done;

    progress_add(now - p->tokens_shown);
    p->tokens_shown = now;
}

static void on_prefill(void *arg, int tokens_done, double seconds)
{
    (void)seconds;
    show_tokens(arg, tokens_done);
}

/* The model as payloads describe it. */
static struct payload_model said_of(const struct model_config *c)
{
    return (struct payload_model){ .name = c->name,
                                   .dtype = c->dtype,
                                   .rope = { .theta = c->rope_theta,
                                             .dims = c->rotary,
                                             .scaling = rope_scaling_name(c->rope_scaling),
                                             .factor = c->rope_factor,
                                             .low = c->rope_low,
                                             .high = c->rope_high,
                                             .attention_factor = c->rope_attention,
                                             .original_max_position_embeddings = c->rope_original } };
}

static int write_variant(struct pack *p, const struct job *j, const struct kv_full *full, struct err *err)
{
    const struct payload_model model = said_of(model_config(p->model));
    char producer[32];
    struct payload_key key = { .model_digest = p->model_digest,
                               .token_digest = j->placement->token_digest,
                               .ids = j->ids.at,
                               .producer = producer,
                               .model = &model };
    const struct config *const config = &j->config;
    struct compressor *c = compressor_new(full, &config, 1, err);
    double *errors = NULL; // what a quantiser loses
    struct variant v;
    uint64_t bytes;

    if (!c)
        return err->code;
    snprintf(producer, sizeof(producer), "evp-pack %s", opt_release());
    int code = compressor_variant(c, &j->config, VARIANT_PAYLOAD, &v, err);
    compressor_free(c);
    if (code)
        return code;
    code = check_bytes(p, j, v.bytes, err);
    if (code && config_bytes_known(config, &v.shape, v.n_tokens) < 0)
        err_add(err, "; it depends on every number: pack with the backend and dtype of the profile");
    if (!code && v.config->stage[METHOD_QUANTISE].method) {
        errors = calloc(2 * (size_t)v.shape.n_layers, sizeof(*errors));
        code = errors ? variant_errors(full, &v, errors, err) : err_nomem(err);
        key.errors = errors;
    }
    if (!code)
        code = packed_payload_write(j->path, &v, &key, &bytes, err);
    free(errors);
    variant_release(&v);
    if (code)
        return code;
    p->bytes += (double)bytes;
    p->n_written++;
    return 0;
}

static int run_job(struct pack *p, const struct job *j, struct session *s, struct err *err)
{
    struct prefill want = { .ids = j->ids.at, .n = j->ids.n, .progress = on_prefill, .arg = p };
    const struct config *const config = &j->config;

    progress_note("%s", j->placement->id);
    configs_need(&config, 1, &want.needs, &want.window);
    if (session_prefill(s, &want, NULL, err) || session_repeat(s, &want, err))
        return err->code;
    return write_variant(p, j, session_full(s), err);
}

/* Reports and counts a failed payload. A failed device ends the run: every later payload would fail too. */
static int run_jobs(struct pack *p, struct session *s, struct err *err)
{
    int code = 0;

    progress_begin("tokens", p->n_tokens);
    for (int i = 0; i < p->n_jobs && !code; i++) {
        const struct job *j = &p->job[i];
        int failed = run_job(p, j, s, err);
        if (failed == ERR_LOST || failed == ERR_DEVICE)
            code = err_wrap(err, "context '%s'", j->placement->id);
        else if (failed)
            count_failure(p, j->placement, err);
        show_tokens(p, j->ids.n);
        p->tokens_before += j->ids.n;
    }
    progress_end();
    return code;
}

/* The jobs as work for engine_start(). config: (n_jobs), borrowed by the work. */
static void list_work(const struct pack *p, struct engine_work *work, const struct config **config)
{
    for (int i = 0; i < p->n_jobs; i++) {
        config[i] = &p->job[i].config;
        work[i] = (struct engine_work){ .n_tokens = p->job[i].ids.n, .config = &config[i], .n_configs = 1 };
    }
}

static int compute(struct pack *p, const char *model, struct err *err)
{
    struct engine_work *work = calloc((size_t)p->n_jobs, sizeof(*work));
    const struct config **config = calloc((size_t)p->n_jobs, sizeof(struct config *));
    struct engine *engine = engine_open(
        &(struct engine_options){
            .model = model, .backend = cfg.backend, .dtype = cfg.dtype, .n_threads = cfg.threads },
        err);
    struct session *session = NULL;

    if (engine)
        backend_say(engine_backend(engine), cfg.threads);
    if (engine && work && config) {
        list_work(p, work, config);
        session = engine_start(engine, work, p->n_jobs, cfg.memory, err);
    }
    int code = !work || !config ? err_nomem(err) : session ? file_mkdir(cfg.out, err) : err->code;
    file_sweep(cfg.out, ".safetensors");
    interrupt_goes_on();
    if (!code)
        code = run_jobs(p, session, err);
    session_free(session);
    engine_close(engine);
    free(config);
    free(work);
    return code;
}

static void summarise_others(const struct pack *p)
{
    summary_int("present", p->n_present);
    if (cfg.tiers) {
        summary_int("placed", p->n_placed);
        summary_int("skipped", p->n_skipped);
        summary_int("away", p->placed.n_away);
    }
    summary_int("failed", p->n_failed);
}

/* Fails if a payload is missing at the end: of the contexts that cannot be packed, and of tiers that cannot be read. */
static int check_missing(const struct pack *p, int n_made, const char *what, struct err *err)
{
    int n = p->n_failed + p->n_skipped;

    return n ? err_set(err, ERR_FAIL, "%d of %d payloads %s", n, n + n_made + p->n_present + p->n_placed, what) : 0;
}

static const char *placed_text(const struct pack *p, char text[TEXT_SHORT])
{
    text[0] = 0;
    if (cfg.tiers)
        snprintf(text, TEXT_SHORT, ", %d in tiers", p->n_placed);
    return text;
}

static int prune(const struct pack *p, struct err *err)
{
    enum prune how = cfg.list ? PRUNE_LIST : cfg.dry_run ? PRUNE_COUNT : PRUNE_REMOVE;
    struct pruned pruned = { 0 };
    char size[TEXT_SHORT];
    int code = prune_payloads(cfg.out, &p->manifest, how, &pruned, err);

    summary_int("pruned", pruned.n);
    summary_int("pruned_bytes", pruned.bytes);
    log_info("%s%d payload%s removed (%s) that '%s' does not name", how == PRUNE_REMOVE ? "" : "would do: ", pruned.n,
             pruned.n == 1 ? "" : "s", text_bytes(size, (double)pruned.bytes), p->manifest_path);
    return code;
}

/* Reports what a run without --dry-run would do; fails as that run for contexts that cannot be packed. */
static int say_jobs(const struct pack *p, struct err *err)
{
    char size[TEXT_SHORT], placed[TEXT_SHORT];
    double bytes = 0;

    for (int i = 0; i < p->n_jobs; i++)
        bytes += (double)p->job[i].placement->bytes;
    summary_int("to_write", p->n_jobs);
    summary_int("to_write_bytes", (int64_t)bytes);
    summary_int("tokens", p->n_tokens);
    summarise_others(p);
    log_info("to do: %d payload%s (%s), %lld tokens to prefill; %d already there%s", p->n_jobs,
             p->n_jobs == 1 ? "" : "s", text_bytes(size, bytes), (long long)p->n_tokens, p->n_present,
             placed_text(p, placed));
    return check_missing(p, p->n_jobs, "cannot be made", err);
}

static int pack(struct pack *p, const char *model, struct err *err)
{
    char size[TEXT_SHORT], placed[TEXT_SHORT];

    if (manifest_read(&p->manifest, p->manifest_path, err) || contexts_read(&p->contexts, p->contexts_path, err) ||
        model_say_for(cfg.model, &p->contexts, p->contexts_path, err) || open_model(p, model, err))
        return err->code;
    const char *name_space = cfg.name_space ? cfg.name_space : p->model_digest;
    if (cfg.tiers && placed_read(&p->placed, cfg.tiers, name_space, &p->manifest, err))
        return err->code;
    if (list_jobs(p, err) || (cfg.prune && prune(p, err)))
        return err->code;
    if (cfg.dry_run || cfg.list)
        return say_jobs(p, err);
    if (p->n_jobs ? compute(p, model, err) : file_mkdir(cfg.out, err))
        return err->code;
    summary_int("written", p->n_written);
    summary_int("written_bytes", (int64_t)p->bytes);
    summarise_others(p);
    log_info("%d payload%s written (%s), %d already there%s", p->n_written, p->n_written == 1 ? "" : "s",
             text_bytes(size, p->bytes), p->n_present, placed_text(p, placed));
    if (check_missing(p, p->n_written, "were not made", err))
        return err->code;
    next_say("evp-load", p->manifest_path, "--payloads", cfg.out, NULL);
    return 0;
}

static int run(char **operand, struct err *err)
{
    struct pack p = { .manifest_path = operand[0], .contexts_path = operand[1] };

    if (strcmp(operand[0], "-") == 0 && strcmp(operand[1], "-") == 0)
        return err_set(err, ERR_USAGE, "only one operand can be '-'");
    if (cfg.name_space && !cfg.tiers)
        return err_set(err, ERR_USAGE, "--namespace needs --tiers");
    if (cfg.name_space && strlen(cfg.name_space) >= INDEX_TEXT)
        return err_set(err, ERR_USAGE, "the name of a namespace has at most %d bytes", INDEX_TEXT - 1);
    if (backend_check(cfg.backend, cfg.dtype, err) || method_plugins_open(cfg.plugin, err) ||
        (cfg.kvzap && kvzap_use(cfg.kvzap, err)))
        return err->code;
    char *model = model_path(cfg.model, err);
    int code = model ? pack(&p, model, err) : err->code;
    pack_release(&p);
    free(model);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;

    wait_briefly(argv);
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    summary_begin(&tool, argc, argv);
    int code = run(argv + first, &err);
    return summary_end(code, 0, &err);
}

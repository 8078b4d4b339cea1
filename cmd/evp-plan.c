/* evp-plan - reads a utility table and tiers, places every context, writes the manifest.
 *
 * placement/placement.h does the work. Here are the options, the sweep over several alphas, the order of the steps and
 * the messages.
 */
#include "base/clock.h"
#include "base/log.h"
#include "cmd/options.h"
#include "base/parse.h"
#include "cmd/engine_say.h"
#include "cmd/next.h"
#include "cmd/plan_explain.h"
#include "cmd/plan_frontier.h"
#include "cmd/plan_say.h"
#include "cmd/score_say.h"
#include "cmd/summary.h"
#include "cmd/tiers_say.h"
#include "placement/placement.h"
#include "planner/normal.h"
#include "profiler/score/serving.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SCALE_COSINE, SCALE_SAME };
enum { ALPHAS_MAX = 64, WORK_PER_SECOND = 1000000 };
enum { RAW_CONTEXTS = 100000 }; // above, no second plan from raw means is made for comparison

static struct {
    const char *tiers, *rules, *previous, *alpha, *output, *verify, *access_before, *access_test;
    struct opt_list access;
    double access_floor, access_min_match;
    double min_quality, min_quality_worst, min_facts, sure, slo_ttft, slo_weight, move_cost, pack_weight, rate, seconds,
        target_quality;
    const char *gpu;
    int solver, parallel_reads, gpus, scale, output_tokens;
    uint64_t max_move; // UINT64_MAX: not given
    bool access_empty, online, raw, measured_only, chunks;
    struct opt_common common;
} cfg = { .alpha = "1",
          .gpus = 1,
          .sure = 0.75,
          .slo_ttft = -1,
          .max_move = UINT64_MAX,
          .access_min_match = 0.5,
          .solver = PLAN_OPTIMAL };

static const struct opt opts[] = {
    OPT_HEAD("Input"),
    OPT_TIERS(&cfg.tiers),
    OPT_ACCESS(&cfg.access),
    OPT_TEXT(
        0, "access-before", &cfg.access_before, "FILE",
        "access log of the period before --access, as long: how many uses follow how many is learned from the two"),
    OPT_TEXT(0, "access-test", &cfg.access_test, "FILE",
             "access log of a later period: say what the plan brings there"),
    OPT_REAL(0, "access-floor", &cfg.access_floor, 0, 1e9, "count every context at least X times"),
    OPT_REAL(0, "access-min-match", &cfg.access_min_match, 0, 1,
             "refuse a log if a smaller share of its accesses goes to contexts of the table"),
    OPT_BOOL(0, "access-empty", &cfg.access_empty, "let logs that count no use of any context evict everything"),
    OPT_TEXT(0, "rules", &cfg.rules, "FILE", "quality floors and pinned tiers, by context"),
    OPT_TEXT(0, "previous", &cfg.previous, "FILE",
             "manifest in force; the new one lists the operations that turn it into the new plan"),
    OPT_HEAD("Objective"),
    OPT_WORDS(0, "alpha", &cfg.alpha, OPT_ALPHA_HELP),
    OPT_REAL(0, "target-quality", &cfg.target_quality, 0, 1,
             "instead of --alpha: the least mean TTFT at this mean quality over accesses; 0: not asked for"),
    OPT_PICK(0, "quality-scale", &cfg.scale, "cosine|same-meaning",
             "what has quality 1: the same answer, or one as near as a second answer of the uncompressed cache"),
    OPT_PERIOD(0, "slo-ttft", &cfg.slo_ttft, "SECONDS", 0, 1e6, "promised TTFT; needs --slo-weight"),
    OPT_REAL(0, "slo-weight", &cfg.slo_weight, 0, 1e9,
             "cost of an expected second beyond --slo-ttft, in seconds of TTFT"),
    OPT_NUM(0, "parallel-reads", &cfg.parallel_reads, 1, TIER_READS_MAX,
            "use the load times of N simultaneous reads of each tier, measured by evp-tiers --parallel"),
    OPT_REAL(0, "rate", &cfg.rate, 0, 1e9, OPT_RATE_HELP),
    OPT_GPUS(&cfg.gpus, 1),
    OPT_OUTPUT_TOKENS(&cfg.output_tokens),
    OPT_GPU(&cfg.gpu, SERVING_GPUS),
    OPT_CHUNKS(&cfg.chunks),
    OPT_MOVE_COST(&cfg.move_cost),
    OPT_PACK_WEIGHT(&cfg.pack_weight),
    OPT_BYTES(0, "max-move", &cfg.max_move, "write at most this much since --previous"),
    OPT_HEAD("Quality floors"),
    OPT_MIN_QUALITY(&cfg.min_quality),
    OPT_REAL(0, "min-quality-worst", &cfg.min_quality_worst, 0, 1,
             "use no variant with a lower measured quality on any train question"),
    OPT_REAL(0, "min-facts", &cfg.min_facts, 0, 1,
             "use no variant that is not sure to keep this share of the answers' facts (docs/profiling.md)"),
    OPT_REAL(0, "sure", &cfg.sure, 0.5, 0.9999, "required probability that a predicted quality is above its floor"),
    OPT_HEAD("Planner"),
    OPT_PICK(0, "solver", &cfg.solver, "evicpress|adaptcache|optimal",
             "smallest loss of utility first, smallest loss per byte first, or near the optimum with proof"),
    OPT_PERIOD(0, "seconds", &cfg.seconds, "SECONDS", 0, 3600,
               "extra time, roughly, to improve a plan of at most 20,000 contexts or to prove it optimal"),
    OPT_BOOL(0, "raw", &cfg.raw, "plan with measured mean qualities instead of predicted ones"),
    OPT_BOOL(0, "measured-only", &cfg.measured_only, "use only variants that answered a train question"),
    OPT_HEAD("Checks, instead of a plan"),
    OPT_TEXT(0, "verify", &cfg.verify, "MANIFEST",
             "check this manifest against the table, or against its own rows if libevicpress saved it"),
    OPT_HEAD("Output"),
    OPT_STREAM(&cfg.output, "PATH"),
    OPT_BOOL(0, "online", &cfg.online,
             "also list the variants that each context could have: libevicpress needs them to keep a live plan"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-plan",
    .summary = "decide which variant of each KV cache is kept, and on which tier",
    .operands = "TABLE",
    .min_operands = 1,
    .max_operands = 1,
    .about =
        "Chooses one config and one tier for every context so that the sum of (alpha * quality - TTFT) * frequency is "
        "high and no tier exceeds its capacity. Not storing a context is always a choice.\n"
        "\n"
        "Reads a utility table (evp-score) and, to make a plan, tiers.json (evp-tiers). Writes a manifest, to standard "
        "output without --output. The summary on stderr compares the plan with simpler ones and bounds how far it is "
        "from the best possible plan.\n"
        "\n"
        "Quality is predicted from the answers to train questions: the mean of few questions moves towards the "
        "config's mean over all contexts, because the best of many noisy means is overrated.\n"
        "\n"
        "--min-quality applies to this prediction, --min-quality-worst to the worst answer measured, --min-facts to "
        "the predicted share of numbers, dates, names and negations of the uncompressed cache's answers that are "
        "kept.\n"
        "\n"
        "With --slo-ttft and --slo-weight an access loses the weight times its expected seconds beyond the promise. "
        "The spread of reads is in tiers.json, the spread of prefills and questions in the table.\n"
        "\n"
        "With --rate what requests wait for each other counts, --gpus GPUs compute for them, and a plan that GPUs or "
        "tiers cannot keep up with is called so. With --access-before the uses of contexts that no log has yet count, "
        "too, as far as past ones tell.\n"
        "\n"
        "--output-tokens, with --gpu, counts the time in which an answer's tokens read the keys and values that a "
        "variant keeps.\n"
        "\n"
        "LIST is one alpha or several, separated by commas or written from..to/step. With several, PATH is a folder: "
        "it gets manifest-ALPHA.jsonl for each and frontier.tsv, which compares them.",
    .examples = "  evp-plan table.h5 --tiers tiers.json >manifest.jsonl\n"
                "  evp-plan table.h5 --tiers tiers.json --access log.jsonl \\\n"
                "      --previous manifest.jsonl -o new.jsonl\n"
                "  evp-plan table.h5 --tiers tiers.json --alpha 0.1,0.3,1,3 -o sweep/\n"
                "  evp-plan table.h5 --verify manifest.jsonl\n",
    .opts = opts,
    .common = &cfg.common,
};

/* ---- one plan ----------------------------------------------------------- */

/* Plans from one input, one alpha after another. */
struct run {
    struct placement_input in;
    char **args; // for the manifests' headers
    int n_args;
    double read_s, solve_s, write_s; // time to read the input, to make the last plan, to write it
    bool sweep;                      // over several alphas: the frontier compares the plans at the end
    int n_plans;                     // made so far
    double price[PLAN_TIERS];        // of the last plan, where the next one starts
};

static int write_manifest(const struct run *run, const struct manifest *m, const struct placement_plan *p,
                          const char *path, struct err *err)
{
    struct json *lineage = table_lineage(&run->in.table);
    const struct json *from[] = { lineage };
    struct rows_made made = {
        .tool = tool.name, .args = run->args, .n_args = run->n_args, .from = from, .n_from = lineage != NULL
    };
    int code = placement_write(m, p, path, made, err);

    json_free(lineage);
    return code;
}

static int say_plan(const struct run *run, const struct placement_plan *p, const struct manifest *m, struct err *err)
{
    struct placement_bill bill;

    if (run->n_plans == 0)
        log_info("read %d contexts in %.2f s, solved in %.2f s, wrote in %.2f s", p->plan.n_contexts, run->read_s,
                 run->solve_s, run->write_s);
    else
        log_info("alpha %g: solved in %.2f s, wrote in %.2f s", m->alpha, run->solve_s, run->write_s);
    if (placement_bill(p, &bill, err))
        return err->code;
    plan_say_json(p, m, &bill);
    if (!run->sweep || cfg.common.verbose > 0)
        plan_say(p, m, &bill);
    return 0;
}

/* Compares the plan with one made from raw means. */
static int say_raw(const struct placement_plan *p, const struct plan_effort *effort, struct err *err)
{
    struct placement_raw raw;

    if (p->in->kind == QUALITY_RAW || p->plan.n_contexts > RAW_CONTEXTS)
        return 0;
    if (placement_raw(p, effort, &raw, err))
        return err->code;
    plan_say_raw(p, &raw);
    return 0;
}

/* --access-test */
static int say_brought(const struct placement_plan *p, struct err *err)
{
    double *later = calloc((size_t)p->in->table.n_contexts + 1, sizeof(*later));
    struct placement_brought b;
    struct access_log log;
    int code = later ? access_read(&log, cfg.access_test, &p->in->table.ids, later, err) : err_nomem(err);

    if (!code)
        code = placement_bring(p, later, &b, err);
    if (!code)
        plan_say_brought(&b, &log);
    free(later);
    return code;
}

/* Solves for run->in.alpha, writes and reports the result. Sets *row on success. */
static int plan_one(struct run *run, const char *path, struct plan_frontier_row *row, struct err *err)
{
    struct plan_effort effort = { .work = (int64_t)(cfg.seconds * WORK_PER_SECOND),
                                  .start = run->n_plans ? run->price : NULL };
    struct placement_plan p;
    struct manifest m;
    double start = clock_now();

    if (placement_solve(&p, &run->in, (enum plan_solver)cfg.solver, &effort, err))
        return err->code;
    run->solve_s = clock_now() - start;
    int code = placement_manifest(&m, &p, err);
    if (!code)
        code = write_manifest(run, &m, &p, path, err);
    if (!code) {
        run->write_s = clock_now() - start - run->solve_s;
        code = say_plan(run, &p, &m, err);
        engine_say_unheld(&m);
        if (!code && !run->sweep)
            code = say_raw(&p, &effort, err);
        if (!code && cfg.access_test)
            code = say_brought(&p, err);
    }
    if (!code) {
        row->total = m.total[0];
        placement_shares(&p, row->share);
        memcpy(run->price, p.plan.price, sizeof(run->price));
        run->n_plans++;
    }
    manifest_release(&m);
    plan_release(&p.plan);
    return code;
}

/* ---- several alphas ------------------------------------------------------ */

struct alphas {
    double at[ALPHAS_MAX];
    int n;
};

static bool read_alphas(struct alphas *a)
{
    a->n = parse_list(cfg.alpha, a->at, ALPHAS_MAX);
    for (int i = 0; i < a->n; i++)
        if (a->at[i] < 0 || a->at[i] > 1e9)
            return false;
    return a->n > 0;
}

/* One plan of the sweep: its manifest in the output folder, its row in the frontier. */
static int plan_alpha(struct run *run, double alpha, struct buf *frontier, struct err *err)
{
    char name[TEXT_SHORT + 32], text[TEXT_SHORT];
    struct plan_frontier_row row;

    snprintf(name, sizeof(name), "manifest-%s.jsonl", text_real(text, alpha));
    char *path = file_join(cfg.output, name);
    if (!path)
        return err_nomem(err);
    run->in.alpha = alpha;
    int code = cfg.previous && file_same(path, cfg.previous)
                   ? err_set(err, ERR_USAGE, "'--previous=%s' would be replaced; give another --output", cfg.previous)
                   : plan_one(run, path, &row, err);
    if (!code)
        plan_frontier_add(frontier, alpha, &row, run->in.tiers.n);
    free(path);
    return code;
}

static int plan_sweep(struct run *run, const struct alphas *alphas, struct err *err)
{
    struct buf frontier = { 0 };

    if (!cfg.output)
        return err_set(err, ERR_USAGE, "several alphas need --output, the name of a folder");
    int code = file_mkdir(cfg.output, err);
    plan_frontier_head(&frontier, &run->in.tiers);
    for (int k = 0; k < alphas->n && !code; k++)
        code = plan_alpha(run, alphas->at[k], &frontier, err);
    char *path = code ? NULL : file_join(cfg.output, "frontier.tsv");
    if (!code)
        code = path ? file_write(path, buf_str(&frontier), frontier.n, err) : err_nomem(err);
    if (!code) {
        plan_explain_frontier(buf_str(&frontier));
        log_info("evp-pack takes the manifest of the alpha that you choose");
        next_say("evp-show", path, NULL);
    }
    free(path);
    buf_release(&frontier);
    return code;
}

/* ---- a quality instead of an alpha -------------------------------------------- */

struct target {
    double low, high; // alphas: too low, and high enough
    double bound_s;   // no plan of this quality has a lower mean TTFT
};

/* Plans with an alpha. *reached: is its mean quality high enough? */
static int try_alpha(struct run *run, double alpha, struct target *t, bool *reached, struct err *err)
{
    struct placement_plan p;
    double uses = 0, quality;

    run->in.alpha = alpha;
    if (placement_solve(&p, &run->in, (enum plan_solver)cfg.solver, &(struct plan_effort){ 0 }, err))
        return err->code;
    for (int i = 0; i < run->in.table.n_contexts; i++)
        uses += run->in.frequency[i];
    int code = placement_mean_quality(&p, &quality, err);
    *reached = !code && quality >= cfg.target_quality;
    t->bound_s = fmax(t->bound_s, alpha * cfg.target_quality - p.plan.upper_bound / uses);
    plan_release(&p.plan);
    return code;
}

/* Sets run->in.alpha to the lowest one, within 1 %, whose plan has the mean quality. For any alpha, alpha * quality -
 * TTFT is at most the bound of its plan, which bounds TTFT from below. */
static int find_alpha(struct run *run, struct err *err)
{
    const double first = 0.1, most = 1e9, near = 1.01;
    struct target t = { .low = 0, .high = first, .bound_s = 0 };
    bool reached = false;

    while (!reached && t.high <= most) {
        if (try_alpha(run, t.high, &t, &reached, err))
            return err->code;
        t.low = reached ? t.low : t.high;
        t.high *= reached ? 1 : 4;
    }
    if (!reached)
        return err_set(err, ERR_FAIL,
                       run->in.left_out.unused ? "no context is used, so there is no mean quality"
                                               : "no plan has a mean quality of %g",
                       cfg.target_quality);
    while (t.low > 0 ? t.high > near * t.low : t.high > 1e-6) {
        double middle = t.low > 0 ? sqrt(t.low * t.high) : t.high / 4;
        if (try_alpha(run, middle, &t, &reached, err))
            return err->code;
        *(reached ? &t.high : &t.low) = middle;
    }
    run->in.alpha = t.high;
    if (run->in.slo_weight > 0 || run->in.load.rate > 0 || run->in.move_cost > 0 || run->in.pack_weight > 0 ||
        run->in.decode_s_per_byte > 0)
        log_info("mean quality %g: --alpha %.4g", cfg.target_quality, t.high);
    else
        log_info("mean quality %g: --alpha %.4g; no plan of this quality has a mean TTFT below %.4g s",
                 cfg.target_quality, t.high, t.bound_s);
    return 0;
}

/* What serves contexts that are not stored: serving systems find the longest prefix. The greedy algorithms, a promised
 * TTFT and live plans take every context for itself. */
static int take_sharing(struct placement_input *in, struct err *err)
{
    const char *alone = cfg.solver != PLAN_OPTIMAL ? "solver"
                        : cfg.slo_weight > 0       ? "slo-ttft"
                        : cfg.online               ? "online"
                                                   : NULL;

    if (alone && cfg.chunks)
        return err_set(err, ERR_USAGE, "--chunks and --%s exclude each other", alone);
    in->sharing = alone ? SHARING_NONE : cfg.chunks ? SHARING_CHUNKS : SHARING_CONTEXTS;
    return 0;
}

/* ---- the tool -------------------------------------------------------------- */

static int read_input(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    int code = placement_input_read(in, files, err);

    plan_say_left_out(&in->left_out);
    if (!code && in->left_out.unused && !cfg.access_empty)
        return err_set(err, ERR_FORMAT,
                       "'%s'%s: no context of '%s' is used: give a longer log, or --access-empty to evict everything",
                       *files->access, files->n_access > 1 ? ", ..." : "", files->table);
    if (!code)
        score_say_noise(&in->table);
    return code ? code : placement_check_rules(in, err);
}

static void say_proof(const struct placement_proof *proof)
{
    struct json_out *w = summary_json();

    json_begin(w, NULL, '{');
    json_put_int(w, "contexts", proof->n_contexts);
    json_put_real(w, "utility", proof->objective);
    json_put_real(w, "upper_bound", proof->bound);
    json_end(w, '}');
    log_info("verified: %d contexts, utility %.9g, no plan exceeds %.9g", proof->n_contexts, proof->objective,
             proof->bound);
}

static int verify(struct run *run, const struct placement_files *files, struct err *err)
{
    struct placement_proof proof;
    struct manifest m;

    if (manifest_read(&m, cfg.verify, err))
        return err->code;
    bool online = strcmp(m.solver, "online") == 0; /* the table lacks contexts that came since */
    int code = online ? placement_verify_online(&m, &proof, err) : placement_input_as(&run->in, &m, files, err);
    plan_say_left_out(&run->in.left_out);
    if (!code && !online && placement_verify(&run->in, &m, &proof, err))
        code = *m.previous && !cfg.previous ? err_wrap(err, "the plan was made with --previous; give that manifest too")
                                            : err->code;
    if (!code)
        say_proof(&proof);
    manifest_release(&m);
    return code;
}

/* The profile's contexts and model, as its command named them. */
static void say_next(const struct run *run)
{
    struct json *made = table_lineage(&run->in.table);
    const char *contexts = next_operand(made, "evp-profile", 1),
               *model = next_option(made, "evp-profile", "model", 'm');
    const char *chat = next_option(made, "evp-profile", "chat-template", 0),
               *date = next_option(made, "evp-profile", "date", 0);

    next_say("evp-pack", cfg.output, *contexts ? contexts : "contexts.jsonl", *model ? "--model" : "", model,
             *chat ? "--chat-template" : "", chat, *date ? "--date" : "", date, "-o", "payloads", NULL);
    json_free(made);
}

static int take_decoding(struct placement_input *in, struct err *err)
{
    enum { BYTES = 1 << 30 };

    if ((cfg.output_tokens > 0) != (cfg.gpu != NULL))
        return err_set(err, ERR_USAGE, "--output-tokens and --gpu must be given together");
    if (cfg.output_tokens == 0)
        return 0;
    if (cfg.online)
        return err_set(err, ERR_USAGE,
                       "--output-tokens and --online exclude each other: a live plan does not know what is kept");
    struct serving_gpu given;
    const struct serving_gpu *gpu = serving_find(cfg.gpu, &given, err);
    if (!gpu)
        return err->code;
    in->decode_s_per_byte = cfg.output_tokens * serving_seconds(gpu, 0, BYTES) / BYTES;
    return 0;
}

static int plan(struct run *run, const struct placement_files *files, struct err *err)
{
    struct alphas alphas = { .n = 0 };
    struct plan_frontier_row row;
    double start = clock_now();

    if (!read_alphas(&alphas))
        return err_set(err, ERR_USAGE,
                       "'--alpha=%s' is not a list of 1 to %d numbers from 0 to 1e9, or a range from..to/step",
                       cfg.alpha, ALPHAS_MAX);
    if (!cfg.tiers)
        return err_set(err, ERR_USAGE, "--tiers is missing");
    if (alphas.n == 1 && cfg.output && file_is_dir(cfg.output))
        return err_set(err, ERR_IO, "'--output=%s' is a folder; with one alpha, give the name of a file", cfg.output);
    if ((cfg.slo_ttft >= 0) != (cfg.slo_weight > 0))
        return err_set(err, ERR_USAGE, "--slo-ttft and --slo-weight must be given together");
    if (cfg.online && cfg.min_quality_worst > 0)
        return err_set(err, ERR_USAGE,
                       "--min-quality-worst and --online exclude each other: a live plan knows only mean qualities");
    if (cfg.target_quality > 0 && (alphas.n > 1 || strcmp(cfg.alpha, "1") != 0))
        return err_set(err, ERR_USAGE, "--target-quality and --alpha exclude each other");
    if (cfg.access_before && cfg.access.n == 0)
        return err_set(err, ERR_USAGE, "--access-before needs --access");
    if (cfg.rate > 0 && (cfg.online || cfg.parallel_reads > 0))
        return err_set(err, ERR_USAGE, "--rate and --%s exclude each other", cfg.online ? "online" : "parallel-reads");
    if (!cfg.previous && (cfg.move_cost > 0 || cfg.max_move != UINT64_MAX))
        return err_set(err, ERR_USAGE, "--move-cost and --max-move need --previous");
    run->in.max_move = cfg.max_move < INT64_MAX ? (int64_t)cfg.max_move : INT64_MAX;
    run->in.slo_ttft_s = fmax(cfg.slo_ttft, 0);
    run->in.slo_weight = cfg.slo_weight;
    run->in.parallel_reads = cfg.parallel_reads;
    run->in.load.rate = cfg.rate;
    run->in.load.gpus = cfg.gpus;
    run->in.move_cost = cfg.move_cost * 0x1p-30;
    run->in.pack_weight = cfg.pack_weight;
    if (take_decoding(&run->in, err) || take_sharing(&run->in, err))
        return err->code;
    if (read_input(&run->in, files, err))
        return err->code;
    tiers_say_doubts(&run->in.tiers);
    run->read_s = clock_now() - start;
    run->sweep = alphas.n > 1;
    if (run->sweep)
        return plan_sweep(run, &alphas, err);
    run->in.alpha = alphas.at[0];
    if (cfg.target_quality > 0 && find_alpha(run, err))
        return err->code;
    if (plan_one(run, cfg.output, &row, err))
        return err->code;
    if (cfg.output)
        say_next(run);
    return 0;
}

int main(int argc, char **argv)
{
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    struct run run = { .in = { .min_quality = cfg.min_quality,
                               .min_quality_worst = cfg.min_quality_worst,
                               .min_facts = cfg.min_facts,
                               .sure_z = normal_quantile(cfg.sure),
                               .kind = cfg.raw ? QUALITY_RAW : QUALITY_PREDICTED,
                               .scale_same = cfg.scale == SCALE_SAME,
                               .access_floor = cfg.access_floor,
                               .access_min_match = cfg.access_min_match,
                               .measured_only = cfg.measured_only,
                               .online = cfg.online },
                       .args = argv + 1,
                       .n_args = argc - 1 };
    struct placement_files files = { .table = argv[first],
                                     .tiers = cfg.tiers,
                                     .access = cfg.access.at,
                                     .n_access = cfg.access.n,
                                     .access_before = cfg.access_before,
                                     .rules = cfg.rules,
                                     .previous = cfg.previous };
    summary_begin(&tool, argc, argv);
    json_begin(summary_json(), "plans", '[');
    int code = cfg.verify ? verify(&run, &files, &err) : plan(&run, &files, &err);
    json_end(summary_json(), ']');
    placement_input_release(&run.in);
    return summary_end(code, 0, &err);
}

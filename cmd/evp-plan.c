/* evp-plan - read a utility table and tiers, place every context, write the manifest.
 *
 * The work is placement/placement.h's; here are the options, the sweep over several alphas and the order in
 * which things are done and said.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/parse.h"
#include "cmd/plan_explain.h"
#include "cmd/plan_say.h"
#include "cmd/summary.h"
#include "placement/placement.h"
#include "planner/normal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALPHAS_MAX = 64, WORK_PER_SECOND = 1000000 };
enum { RAW_CONTEXTS = 100000 }; // more are not planned twice to say what raw means would have done

static struct {
    const char *tiers, *rules, *previous, *alpha, *output, *verify, *audit, *max_move;
    struct opt_list access;
    double access_floor, access_min_match;
    double min_quality, min_quality_worst, sure, slo_ttft, slo_weight, move_cost, seconds;
    int solver, parallel_reads;
    bool lenient, online, raw, measured_only;
    struct opt_common common;
} cfg = { .alpha = "1", .sure = 0.75, .slo_ttft = -1, .access_min_match = 0.5, .solver = PLAN_OPTIMAL };

static const struct opt opts[] = {
    OPT_HEAD("What is known"),
    OPT_TIERS(&cfg.tiers),
    OPT_MANY('a', "access", &cfg.access, "FILE",
             "access log, also compressed; without it every context counts once; may be repeated: counts add up"),
    OPT_REAL(0, "access-floor", &cfg.access_floor, 0, 1e9, "count every context at least so often"),
    OPT_REAL(0, "access-min-match", &cfg.access_min_match, 0, 1,
             "refuse a log when a smaller part of it is to contexts of the table"),
    OPT_TEXT(0, "previous", &cfg.previous, "FILE", "the manifest in force: operations lead from it to the new one"),
    OPT_BOOL(0, "lenient", &cfg.lenient, "leave out cells that break a rule and pins to unknown tiers, and count them"),
    OPT_HEAD("What is wanted"),
    OPT_TEXT(0, "alpha", &cfg.alpha, "LIST", OPT_ALPHA_HELP),
    OPT_REAL(0, "min-quality", &cfg.min_quality, 0, 1, "no variant of lower quality for any context"),
    OPT_REAL(0, "min-quality-worst", &cfg.min_quality_worst, 0, 1,
             "no variant that answered some train question worse, as it was measured"),
    OPT_REAL(0, "sure", &cfg.sure, 0.5, 0.9999,
             "how sure a quality must be to exceed its floor, as far as it is predicted"),
    OPT_REAL(0, "slo-ttft", &cfg.slo_ttft, 0, 1e6, "the TTFT in seconds that is promised"),
    OPT_REAL(0, "slo-weight", &cfg.slo_weight, 0, 1e9,
             "what an expected second beyond --slo-ttft costs, in seconds of TTFT"),
    OPT_NUM(0, "parallel-reads", &cfg.parallel_reads, 1, TIER_READS_MAX,
            "count times with so many reads of each tier at once, as evp-tiers --jobs measured them"),
    OPT_TEXT(0, "rules", &cfg.rules, "FILE", "quality floors and pinned tiers of single contexts"),
    OPT_REAL(0, "move-cost", &cfg.move_cost, 0, 1e9, "utility that each GiB written since --previous must bring"),
    OPT_TEXT(0, "max-move", &cfg.max_move, "SIZE", "write at most this much since --previous"),
    OPT_HEAD("How"),
    OPT_BOOL(0, "raw", &cfg.raw, "plan with the measured means, not with what is believed of so few questions"),
    OPT_PICK(0, "solver", &cfg.solver, "evicpress|adaptcache|optimal",
             "smallest loss of utility first, smallest loss per byte first, or near the optimum with proof"),
    OPT_BOOL(0, "measured-only", &cfg.measured_only, "leave out variants that answered no train question"),
    OPT_REAL(0, "seconds", &cfg.seconds, 0, 3600,
             "more time, roughly, to improve a plan of at most 20,000 contexts, or to find that it is optimal"),
    OPT_TEXT(0, "verify", &cfg.verify, "MANIFEST",
             "plan nothing: check this manifest against the table, or against its own rows if libevicpress saved it"),
    OPT_TEXT(0, "audited", &cfg.audit, "MANIFEST",
             "plan nothing: compare this plan's predicted qualities with those of contexts profiled in full"),
    OPT_HEAD("Output"),
    OPT_OUTPUT(&cfg.output, "PATH"),
    OPT_BOOL(0, "online", &cfg.online,
             "also list the variants that each context could have, so that libevicpress can keep the plan up to date"),
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
        "Reads a utility table (evp-score) and tiers.json (evp-tiers), chooses one config and tier for every context "
        "so that the sum of (alpha * quality - TTFT) * frequency is high and no tier holds more than its capacity, "
        "and writes a manifest, to standard output unless --output is given. --tiers is required except with --verify. "
        "Quality is what is believed of the train questions' answers: the mean of few questions moves towards its "
        "config's mean over all contexts, because the best of many noisy means is overrated. "
        "Not storing a context at all is always a choice. With --slo-ttft and --slo-weight an access loses the weight "
        "times the seconds by which its TTFT is expected to exceed the promise; how far reads spread is tiers.json's, "
        "prefills and questions the table's. "
        "--min-quality holds for what is believed of the mean over train questions, --min-quality-worst for the worst "
        "of those that were answered. The summary on stderr compares the plan with simpler ones, "
        "and says how far it can be from the best possible plan. LIST is one alpha or several, separated by commas, or "
        "from..to/step; with several PATH is a folder, which gets manifest-ALPHA.jsonl for each and frontier.tsv, "
        "which compares "
        "them.",
    .examples = "  evp-plan table.h5 --tiers tiers.json >manifest.jsonl\n"
                "  evp-plan table.h5 --tiers tiers.json --access log.jsonl \\\n"
                "      --previous manifest.jsonl -o new.jsonl\n"
                "  evp-plan table.h5 --tiers tiers.json --alpha 0.1,0.3,1,3 -o sweep/\n"
                "  evp-plan table.h5 --verify manifest.jsonl\n",
    .opts = opts,
    .common = &cfg.common,
};

/* ---- one plan ----------------------------------------------------------- */

/* Plans of one input, for one alpha after the other. */
struct run {
    struct placement_input in;
    char **args; // for the manifests' headers
    int n_args;
    double read_s;            // that reading the input took
    bool sweep;               // over several alphas: the frontier says at the end what each plan comes to
    int n_plans;              // made so far
    double price[PLAN_TIERS]; // of the last one: where the next one starts
};

/* What a plan comes to. */
struct outcome_row {
    struct manifest_total total;
    double share[PLAN_TIERS + 1]; // of the accesses, by tier; recompute last
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

static void say_plan(const struct run *run, const struct placement_plan *p, const struct manifest *m, double solve_s,
                     double write_s)
{
    if (run->n_plans == 0)
        log_info("read %d contexts in %.2f s, solved in %.2f s, wrote in %.2f s", p->plan.n_contexts, run->read_s,
                 solve_s, write_s);
    else
        log_info("alpha %g: solved in %.2f s, wrote in %.2f s", m->alpha, solve_s, write_s);
    plan_say_json(p, m);
    if (!run->sweep || cfg.common.verbose > 0)
        plan_say(p, m);
}

/* Says what planning with raw means would have come to. */
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

/* Solves for run->in.alpha, writes and says the result. *row is set on success. */
static int plan_one(struct run *run, const char *path, struct outcome_row *row, struct err *err)
{
    struct plan_effort effort = { .work = (int64_t)(cfg.seconds * WORK_PER_SECOND),
                                  .start = run->n_plans ? run->price : NULL };
    struct placement_plan p;
    struct manifest m;
    double start = clock_now();

    if (placement_solve(&p, &run->in, (enum plan_solver)cfg.solver, &effort, err))
        return err->code;
    double solved = clock_now();
    int code = placement_manifest(&m, &p, err);
    if (!code)
        code = write_manifest(run, &m, &p, path, err);
    if (!code) {
        say_plan(run, &p, &m, solved - start, clock_now() - solved);
        code = run->sweep ? 0 : say_raw(&p, &effort, err);
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

static void frontier_head(struct buf *out, const struct tiers *tiers)
{
    buf_adds(out, "alpha\tquality\tquality_test\tttft_s");
    for (int t = 0; t < tiers->n; t++)
        buf_printf(out, "\thits_%s", tiers->at[t].name);
    buf_adds(out, "\thits_recompute\n");
}

static void frontier_row(struct buf *out, double alpha, const struct outcome_row *row, int n_tiers)
{
    const double mean[] = { row->total.quality, row->total.quality_test, row->total.ttft_s };

    buf_printf(out, "%g", alpha);
    for (int i = 0; i < 3; i++)
        buf_printf(out, isnan(mean[i]) ? "\t-" : "\t%.6f", mean[i]);
    for (int t = 0; t <= n_tiers; t++)
        buf_printf(out, "\t%.6f", row->share[t]);
    buf_addc(out, '\n');
}

/* One plan of the sweep: its manifest in the output folder, its row in the frontier. */
static int plan_alpha(struct run *run, double alpha, struct buf *frontier, struct err *err)
{
    char name[TEXT_SHORT + 32], text[TEXT_SHORT];
    struct outcome_row row;

    snprintf(name, sizeof(name), "manifest-%s.jsonl", text_real(text, alpha));
    char *path = file_join(cfg.output, name);
    if (!path)
        return err_nomem(err);
    run->in.alpha = alpha;
    int code = cfg.previous && file_same(path, cfg.previous)
                   ? err_set(err, ERR_USAGE, "'--previous=%s' would be replaced; give another --output", cfg.previous)
                   : plan_one(run, path, &row, err);
    if (!code)
        frontier_row(frontier, alpha, &row, run->in.tiers.n);
    free(path);
    return code;
}

static int plan_sweep(struct run *run, const struct alphas *alphas, struct err *err)
{
    struct buf frontier = { 0 };

    if (!cfg.output)
        return err_set(err, ERR_USAGE, "several alphas need a folder: --output is missing");
    int code = file_mkdir(cfg.output, err);
    frontier_head(&frontier, &run->in.tiers);
    for (int k = 0; k < alphas->n && !code; k++)
        code = plan_alpha(run, alphas->at[k], &frontier, err);
    char *path = code ? NULL : file_join(cfg.output, "frontier.tsv");
    if (!code)
        code = path ? file_write(path, buf_str(&frontier), frontier.n, err) : err_nomem(err);
    if (!code) {
        plan_explain_frontier(buf_str(&frontier));
        log_info("next: evp-show %s, then evp-pack on the manifest of the alpha that you choose", path);
    }
    free(path);
    buf_release(&frontier);
    return code;
}

/* ---- the tool -------------------------------------------------------------- */

static int read_input(struct placement_input *in, const struct placement_files *files, struct err *err)
{
    int code = placement_input_read(in, files, err);

    plan_say_left_out(&in->left_out);
    return code ? code : placement_check_rules(in, err);
}

/* A plan of the summary that is known from its manifest alone. */
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
    if (proof->expected_loss > 0)
        log_info("against knowing every quality it loses about %.4g", proof->expected_loss);
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
        code = *m.previous && !cfg.previous ? err_wrap(err, "it was made with --previous; give that manifest here, too")
                                            : err->code;
    if (!code)
        say_proof(&proof);
    manifest_release(&m);
    return code;
}

static int audit(const char *path, struct err *err)
{
    struct placement_audit a;
    struct table t = { 0 };
    struct manifest m = { 0 };
    int code = table_read(&t, path, TABLE_ALL, err);

    if (!code && !t.quality_train)
        code = err_set(err, ERR_FORMAT, "'%s' has no qualities yet: run evp-score on it", path);
    if (!code)
        code = manifest_read(&m, cfg.audit, err);
    if (!code && strcmp(m.model_digest, t.model_digest) != 0)
        code = err_set(err, ERR_FORMAT, "'%s' was made for another model than '%s'", cfg.audit, path);
    if (!code)
        code = placement_audit(&a, &t, &m, err);
    if (!code)
        plan_say_audit(&a);
    manifest_release(&m);
    table_release(&t);
    return code;
}

static int plan(struct run *run, const struct placement_files *files, struct err *err)
{
    struct alphas alphas = { .n = 0 };
    struct outcome_row row;
    double start = clock_now();
    uint64_t max_move = INT64_MAX;

    if (!read_alphas(&alphas))
        return err_set(err, ERR_USAGE,
                       "'--alpha=%s' is not a list of 1 to %d numbers from 0 to 1e9, or a range from..to/step",
                       cfg.alpha, ALPHAS_MAX);
    if (!cfg.tiers)
        return err_set(err, ERR_USAGE, "--tiers is missing");
    if (cfg.max_move && (!parse_size(cfg.max_move, &max_move) || max_move > INT64_MAX))
        return err_set(err, ERR_USAGE, "'--max-move=%s' is not a size", cfg.max_move);
    if (alphas.n == 1 && cfg.output && file_is_dir(cfg.output))
        return err_set(err, ERR_IO, "'--output=%s' is a folder; with one alpha it is the name of a file", cfg.output);
    if ((cfg.slo_ttft >= 0) != (cfg.slo_weight > 0))
        return err_set(err, ERR_USAGE, "--slo-ttft and --slo-weight say it together: one of them is missing");
    if (cfg.online && cfg.min_quality_worst > 0)
        return err_set(err, ERR_USAGE,
                       "--min-quality-worst and --online: a live plan knows mean qualities only, so it cannot keep it");
    if (!cfg.previous && (cfg.move_cost > 0 || cfg.max_move))
        return err_set(err, ERR_USAGE, "--move-cost and --max-move need --previous");
    run->in.max_move = (int64_t)max_move;
    run->in.slo_ttft_s = fmax(cfg.slo_ttft, 0);
    run->in.slo_weight = cfg.slo_weight;
    run->in.parallel_reads = cfg.parallel_reads;
    run->in.move_cost = cfg.move_cost * 0x1p-30;
    if (read_input(&run->in, files, err))
        return err->code;
    run->read_s = clock_now() - start;
    run->sweep = alphas.n > 1;
    if (run->sweep)
        return plan_sweep(run, &alphas, err);
    run->in.alpha = alphas.at[0];
    if (plan_one(run, cfg.output, &row, err))
        return err->code;
    if (cfg.output)
        log_info("next: evp-pack %s contexts.jsonl -o payloads", cfg.output);
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
                               .sure_z = normal_quantile(cfg.sure),
                               .kind = cfg.raw ? QUALITY_RAW : QUALITY_PREDICTED,
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
                                     .rules = cfg.rules,
                                     .previous = cfg.previous,
                                     .want = cfg.lenient ? TABLE_PLAN_LENIENT : TABLE_PLAN };
    summary_begin(&tool, argc, argv);
    json_begin(summary_json(), "plans", '[');
    int code = cfg.audit    ? audit(argv[first], &err)
               : cfg.verify ? verify(&run, &files, &err)
                            : plan(&run, &files, &err);
    json_end(summary_json(), ']');
    placement_input_release(&run.in);
    return summary_end(code, 0, &err);
}

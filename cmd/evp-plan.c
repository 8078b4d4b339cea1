/* evp-plan - read a utility table and tiers, place every context, write the manifest.
 *
 * The work is planner/placement/placement.h's; here are the options, the sweep over several alphas and the order in
 * which things are done and said.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/parse.h"
#include "cmd/plan_say.h"
#include "planner/placement/placement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALPHAS_MAX = 64, WORK_PER_SECOND = 1000000 };

static struct {
    const char *tiers, *access, *rules, *previous, *alpha, *output, *verify, *max_move;
    double min_quality, move_cost, seconds;
    int solver;
    bool lenient, online;
    struct opt_common common;
} cfg = { .alpha = "1", .solver = PLAN_OPTIMAL };

static const struct opt opts[] = {
    OPT_HEAD("What is known"),
    OPT_TIERS(&cfg.tiers),
    OPT_TEXT('a', "access", &cfg.access, "FILE", "access log; without it every context counts once"),
    OPT_TEXT(0, "previous", &cfg.previous, "FILE", "the manifest in force: operations lead from it to the new one"),
    OPT_BOOL(0, "lenient", &cfg.lenient, "leave out cells that break a rule and pins to unknown tiers, and count them"),
    OPT_HEAD("What is wanted"),
    OPT_TEXT(0, "alpha", &cfg.alpha, "LIST", OPT_ALPHA_HELP),
    OPT_REAL(0, "min-quality", &cfg.min_quality, 0, 1, "no variant of lower quality for any context"),
    OPT_TEXT(0, "rules", &cfg.rules, "FILE", "quality floors and pinned tiers of single contexts"),
    OPT_REAL(0, "move-cost", &cfg.move_cost, 0, 1e9, "utility that each GiB written since --previous must bring"),
    OPT_TEXT(0, "max-move", &cfg.max_move, "SIZE", "write at most this much since --previous"),
    OPT_HEAD("How"),
    OPT_PICK(0, "solver", &cfg.solver, "evicpress|adaptcache|optimal",
             "smallest loss of utility first, smallest loss per byte first, or near the optimum with proof"),
    OPT_REAL(0, "seconds", &cfg.seconds, 0, 3600, "time, roughly, to improve a plan of few contexts"),
    OPT_TEXT(0, "verify", &cfg.verify, "MANIFEST", "plan nothing: check this manifest against the table"),
    OPT_HEAD("Output"),
    OPT_OUTPUT(&cfg.output, "PATH"),
    OPT_BOOL(0, "online", &cfg.online,
             "also list the variants that each context could have, so that libevp can keep the plan up to date"),
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
        "Not storing a context at all is always a choice. The summary on stderr compares the plan with simpler ones, "
        "and says how far it can be from the best possible plan. LIST is one alpha or several, separated by commas; "
        "with several PATH is a folder, which gets manifest-ALPHA.jsonl for each and frontier.tsv, which compares "
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
    plan_say(p, m);
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

static int add_alpha(void *arg, const char *piece, size_t n)
{
    struct alphas *a = arg;
    char text[TEXT_SHORT] = "";
    double v;

    if (a->n == ALPHAS_MAX || n >= sizeof(text))
        return -1;
    memcpy(text, piece, n);
    if (!parse_real(text, &v) || v < 0 || v > 1e9)
        return -1;
    a->at[a->n++] = v;
    return 0;
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
    buf_printf(out, "%g\t%.6f\t%.6f\t%.6f", alpha, row->total.quality, row->total.quality_test, row->total.ttft_s);
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
    int code = plan_one(run, path, &row, err);
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

static int verify(struct run *run, const struct placement_files *files, struct err *err)
{
    struct placement_proof proof;
    struct manifest m;

    if (manifest_read(&m, cfg.verify, err))
        return err->code;
    int code = placement_input_as(&run->in, &m, files, err);
    plan_say_left_out(&run->in.left_out);
    if (!code)
        code = placement_verify(&run->in, &m, &proof, err);
    if (!code)
        log_info("verified: %d contexts, utility %.9g, no plan exceeds %.9g", proof.n_contexts, proof.objective,
                 proof.bound);
    manifest_release(&m);
    return code;
}

static int plan(struct run *run, const struct placement_files *files, struct err *err)
{
    struct alphas alphas = { .n = 0 };
    struct outcome_row row;
    double start = clock_now();
    uint64_t max_move = INT64_MAX;

    if (opt_split(cfg.alpha, add_alpha, &alphas))
        return err_set(err, ERR_USAGE, "'--alpha=%s' is not a list of 1 to %d numbers from 0 to 1e9", cfg.alpha,
                       ALPHAS_MAX);
    if (!cfg.tiers)
        return err_set(err, ERR_USAGE, "--tiers is missing");
    if (cfg.max_move && (!parse_size(cfg.max_move, &max_move) || max_move > INT64_MAX))
        return err_set(err, ERR_USAGE, "'--max-move=%s' is not a size", cfg.max_move);
    if (!cfg.previous && (cfg.move_cost > 0 || cfg.max_move))
        return err_set(err, ERR_USAGE, "--move-cost and --max-move need --previous");
    run->in.max_move = (int64_t)max_move;
    run->in.move_cost = cfg.move_cost * 0x1p-30;
    if (read_input(&run->in, files, err))
        return err->code;
    run->read_s = clock_now() - start;
    if (alphas.n > 1)
        return plan_sweep(run, &alphas, err);
    run->in.alpha = alphas.at[0];
    return plan_one(run, cfg.output, &row, err);
}

int main(int argc, char **argv)
{
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    struct run run = { .in = { .min_quality = cfg.min_quality, .online = cfg.online },
                       .args = argv + 1,
                       .n_args = argc - 1 };
    struct placement_files files = { .table = argv[first],
                                     .tiers = cfg.tiers,
                                     .access = cfg.access,
                                     .rules = cfg.rules,
                                     .previous = cfg.previous,
                                     .want = cfg.lenient ? TABLE_PLAN_LENIENT : TABLE_PLAN };
    int code = cfg.verify ? verify(&run, &files, &err) : plan(&run, &files, &err);
    placement_input_release(&run.in);
    return opt_finish(code ? log_failure(&err) : 0);
}

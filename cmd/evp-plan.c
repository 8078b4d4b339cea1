/* evp-plan - read a utility table and tiers, place every context, write the manifest. Its parts:
 * planner/placement/placement.h. */
#include "planner/placement/placement.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALPHAS = 64, WORK_PER_SECOND = 1000000 };

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

static int write_manifest(const struct manifest *m, const struct plan_input *in, const struct plan *plan,
                          const char *path, char **argv, int argc, struct err *err)
{
    const char *text = in->table.lineage;
    struct json *lineage = *text ? json_parse(text, strlen(text), err) : NULL;
    const struct json *from[] = { lineage };
    struct rows_made made = {
        .tool = tool.name, .args = argv + 1, .n_args = argc - 1, .from = from, .n_from = lineage != NULL
    };
    int code = plan_write(m, in, plan, path, made, err);

    json_free(lineage);
    return code;
}

static int solve(struct plan *plan, struct plan_input *in, const double *start, struct err *err)
{
    struct plan_effort effort = { .work = (int64_t)(cfg.seconds * WORK_PER_SECOND), .start = start };
    struct plan_problem problem = plan_input_problem(in);
    enum plan_solver solver = (enum plan_solver)cfg.solver;
    int code = in->max_move < INT64_MAX ? plan_within_moves(plan, in, solver, &effort, err)
                                        : plan_solve(plan, &problem, solver, &effort, err);

    return code ? code : plan_check_pins(in, plan, err);
}

/* Solves for in->alpha, writes, tells. *read: seconds that reading took, said once. */
static int plan_one(struct plan_input *in, const char *path, double *price, double *read, char **argv, int argc,
                    struct manifest_total *total, double *share, struct err *err)
{
    struct plan plan;
    struct manifest m = { 0 };
    double start = clock_now(), solved;

    in->move_cost = cfg.move_cost * 0x1p-30;
    in->move_price = 0;
    if (solve(&plan, in, *read < 0 ? price : NULL, err))
        return err->code;
    solved = clock_now();
    int code = plan_manifest(&m, in, &plan, (enum plan_solver)cfg.solver, err);
    if (!code)
        code = write_manifest(&m, in, &plan, path, argv, argc, err);
    if (!code) {
        if (*read >= 0)
            log_info("read %d contexts in %.2f s, solved in %.2f s, wrote in %.2f s", plan.n_contexts, *read,
                     solved - start, clock_now() - solved);
        else
            log_info("alpha %g: solved in %.2f s, wrote in %.2f s", in->alpha, solved - start, clock_now() - solved);
        *read = -1;
        plan_say(in, &plan, &m);
        *total = m.total[0];
        plan_shares(in, &plan, share);
        memcpy(price, plan.price, sizeof(plan.price));
    }
    plan_manifest_release(&m);
    plan_release(&plan);
    return code;
}

/* ---- several alphas ------------------------------------------------------ */

struct alphas {
    double at[ALPHAS];
    int n;
};

static int add_alpha(void *arg, const char *piece, size_t n)
{
    struct alphas *a = arg;
    char text[TEXT_SHORT] = "";
    double v;

    if (a->n == ALPHAS || n >= sizeof(text))
        return -1;
    memcpy(text, piece, n);
    if (!parse_real(text, &v) || v < 0 || v > 1e9)
        return -1;
    a->at[a->n++] = v;
    return 0;
}

static void frontier_head(struct buf *out, const struct plan_input *in)
{
    buf_adds(out, "alpha\tquality\tquality_test\tttft_s");
    for (int t = 0; t < in->tiers.n; t++)
        buf_printf(out, "\thits_%s", in->tiers.at[t].name);
    buf_adds(out, "\thits_recompute\n");
}

static void frontier_row(struct buf *out, const struct plan_input *in, const struct manifest_total *total,
                         const double *share)
{
    buf_printf(out, "%g\t%.6f\t%.6f\t%.6f", in->alpha, total->quality, total->quality_test, total->ttft_s);
    for (int t = 0; t <= in->tiers.n; t++)
        buf_printf(out, "\t%.6f", share[t]);
    buf_addc(out, '\n');
}

static int plan_sweep(struct plan_input *in, const struct alphas *alphas, double read, char **argv, int argc,
                      struct err *err)
{
    struct manifest_total total;
    double price[PLAN_TIERS], share[PLAN_TIERS + 1];
    struct buf frontier = { 0 };
    int code = cfg.output ? file_mkdir(cfg.output, err)
                          : err_set(err, ERR_USAGE, "several alphas need a folder: --output is missing");

    frontier_head(&frontier, in);
    for (int k = 0; k < alphas->n && !code; k++) {
        char name[TEXT_SHORT + 32], text[TEXT_SHORT];
        snprintf(name, sizeof(name), "manifest-%s.jsonl", text_real(text, alphas->at[k]));
        char *path = file_join(cfg.output, name);
        in->alpha = alphas->at[k];
        code = path ? plan_one(in, path, price, &read, argv, argc, &total, share, err) : err_nomem(err);
        frontier_row(&frontier, in, &total, share);
        free(path);
    }
    char *path = code ? NULL : file_join(cfg.output, "frontier.tsv");
    if (path)
        code = file_write(path, buf_str(&frontier), frontier.n, err);
    free(path);
    buf_release(&frontier);
    return code;
}

/* ---- the tool -------------------------------------------------------------- */

static int verify(struct plan_input *in, const struct plan_files *files, const struct manifest *m, struct err *err)
{
    if (in->table.n_contexts == 0)
        return err_set(err, ERR_FORMAT, "'%s' has no contexts", files->table);
    for (int i = 0; i < m->n; i++) {
        int row = map_find(&in->table.ids, m->at[i].id, strlen(m->at[i].id));
        if (row != MAP_ABSENT)
            in->frequency[row] = m->at[i].frequency;
    }
    in->alpha = m->alpha;
    in->move_cost = m->move_cost;
    in->move_price = m->move_price;
    in->max_move = m->max_move;
    return plan_verify(in, m, err);
}

/* Tiers and frequencies are the manifest's own. */
static int run_verify(struct plan_input *in, struct plan_files *files, struct err *err)
{
    struct manifest m;

    if (manifest_read(&m, cfg.verify, err))
        return err->code;
    in->tiers = m.tiers;
    files->tiers = NULL;
    int code = plan_input_read(in, files, err);
    if (!code)
        code = verify(in, files, &m, err);
    in->tiers = (struct tiers){ 0 };
    manifest_release(&m);
    return code;
}

static int run_plan(struct plan_input *in, const struct plan_files *files, char **argv, int argc, struct err *err)
{
    struct alphas alphas = { .n = 0 };
    struct manifest_total total;
    double start = clock_now(), price[PLAN_TIERS], share[PLAN_TIERS + 1];

    if (opt_split(cfg.alpha, add_alpha, &alphas))
        return err_set(err, ERR_USAGE, "'--alpha=%s' is not a list of numbers from 0 up", cfg.alpha);
    if (!cfg.tiers)
        return err_set(err, ERR_USAGE, "--tiers is missing");
    uint64_t most = INT64_MAX;
    if (cfg.max_move && (!parse_size(cfg.max_move, &most) || most > INT64_MAX))
        return err_set(err, ERR_USAGE, "'--max-move=%s' is not a size", cfg.max_move);
    in->max_move = (int64_t)most;
    if (!cfg.previous && (cfg.move_cost > 0 || cfg.max_move))
        return err_set(err, ERR_USAGE, "--move-cost and --max-move need --previous");
    if (plan_input_read(in, files, err) || plan_check_rules(in, err))
        return err->code;
    double read = clock_now() - start;
    in->alpha = alphas.at[0];
    return alphas.n > 1 ? plan_sweep(in, &alphas, read, argv, argc, err)
                        : plan_one(in, cfg.output, price, &read, argv, argc, &total, share, err);
}

int main(int argc, char **argv)
{
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    struct plan_input in = { .min_quality = cfg.min_quality, .online = cfg.online };
    struct plan_files files = { argv[first], cfg.tiers,    cfg.access,
                                cfg.rules,   cfg.previous, cfg.lenient ? TABLE_PLAN_LENIENT : TABLE_PLAN };
    int code = cfg.verify ? run_verify(&in, &files, &err) : run_plan(&in, &files, argv, argc, &err);
    plan_input_release(&in);
    return opt_finish(code ? log_failure(&err) : 0);
}

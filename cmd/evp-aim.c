/* evp-aim - lists the answers worth computing, for evp-profile --cells.
 *
 * The train questions that can change the plan (aiming/aim_list.c), or the test questions of a finished plan
 * (aiming/aim_test.c). One list, or lists, profiles and scores in turns (aim_rounds.c).
 */
#include "base/log.h"
#include "base/opt.h"
#include "cmd/aim_rounds.h"
#include "cmd/model_say.h"
#include "cmd/profile_say.h"
#include "cmd/summary.h"
#include "methods/method_plugin.h"

#include <math.h>

static struct aim_options cfg = { .alpha = 1, .sure = 0.75, .until = -1, .answer_tokens = 50, .max_new_tokens = 32 };
static struct opt_common common;

static const struct opt opts[] = {
    OPT_HEAD("Choice"),
    OPT_CONFIGS(&cfg.configs),
    OPT_PLUGIN(&cfg.plugin),
    OPT_TEXT(
        0, "budget", &cfg.budget, "X",
        "most that the list may cost: a share of all train questions over all configs, like 12%, or seconds (default: 4%; "
        "with --run 12% for all lists together)"),
    OPT_REAL(0, "until", &cfg.until, 0, 1e12, "ask nothing once the plan's expected loss of utility is at most X"),
    OPT_NUM(0, "answer-tokens", &cfg.answer_tokens, 1, 100000, "cost of an answer, in tokens of prefill"),
    OPT_PRIOR(&cfg.prior),
    OPT_HEAD("Other lists, instead"),
    OPT_NUM(0, "audit", &cfg.audit, 1, INT_MAX,
            "all train questions over all configs of N contexts, for evp-plan --audited"),
    OPT_TEXT(0, "test", &cfg.test, "MANIFEST",
             "the test questions of each context over the variant chosen by this plan"),
    OPT_HEAD("Model"),
    OPT_MODEL(&cfg.model),
    OPT_CHAT(&cfg.chat),
    OPT_TRUNCATE(&cfg.truncate),
    OPT_MAX_NEW_TOKENS(&cfg.max_new_tokens),
    OPT_HEAD("Plan, as for evp-plan"),
    OPT_TIERS(&cfg.tiers),
    OPT_REAL(0, "alpha", &cfg.alpha, 0, 1e9, OPT_ALPHA_HELP),
    OPT_ACCESS(&cfg.access),
    OPT_RULES(&cfg.rules),
    OPT_MIN_QUALITY(&cfg.min_quality),
    OPT_SURE(&cfg.sure),
    OPT_HEAD("Rounds"),
    OPT_BOOL(0, "run", &cfg.run, "run evp-profile and evp-score after each list; --output is a folder"),
    OPT_NUM(0, "rounds", &cfg.rounds, 1, 100, "with --run: make N lists after the pilot"),
    OPT_PROFILE_OPTIONS(&cfg.profile_options),
    OPT_TEXT(0, "score-options", &cfg.score_options, "TEXT", "more options for evp-score, separated by blanks"),
    OPT_HEAD("Output"),
    OPT_STREAM(&cfg.output, "PATH"),
    OPT_COMMON(&common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-aim",
    .summary = "list the answers worth computing",
    .operands = "CONTEXTS QUESTIONS [TABLE]",
    .min_operands = 2,
    .max_operands = 3,
    .about =
        "Writes a list of contexts, configs and questions, to standard output without --output; evp-profile --cells "
        "computes the answers and adds them to its FILE.\n"
        "\n"
        "Without TABLE the list is the pilot: a few questions over all configs (by default those of evp-profile) of a few contexts. --prior makes a "
        "pilot unnecessary.\n"
        "\n"
        "With TABLE (evp-score) it has the train questions that can change the plan, the most change for their cost "
        "first, and none once nothing is worth asking. The plan is the one that evp-plan makes with the same tiers, "
        "alpha and access log (--tiers is required). The default --configs are those of TABLE.\n"
        "\n"
        "Three lists of 6%, 4% and 2% give nearly the plan of all answers. --rounds 3 --run makes and computes them on "
        "this machine; the same command goes on after an interruption.\n"
        "\n"
        "--test lists, for every context that MANIFEST keeps compressed, its test questions over the chosen variant: "
        "with their answers the plan's quality is reported on questions that it was not made from.",
    .examples = "  evp-aim contexts.jsonl questions.jsonl -c knorm:drop=0.1..0.9/0.2 -o l.jsonl\n"
                "  evp-profile contexts.jsonl questions.jsonl --cells l.jsonl -o profile.h5\n"
                "  evp-score profile.h5 -o table.h5\n"
                "  evp-aim contexts.jsonl questions.jsonl table.h5 -t tiers.json \\\n"
                "      --budget 6% -o l.jsonl\n"
                "  evp-aim contexts.jsonl questions.jsonl -c knorm:drop=0.1..0.9/0.2 \\\n"
                "      -t tiers.json --rounds 3 --run -o aimed/\n"
                "  evp-aim contexts.jsonl questions.jsonl --test manifest.jsonl -o l.jsonl\n",
    .opts = opts,
    .common = &common,
};

void aim_say(const struct aim_job *j, const struct aim_out *out)
{
    struct aim_cost full = aim_full_cost(j);

    if (out->dear_pilot)
        log_warn("a pilot of %d contexts costs more than the budget, %.2g %% of all train questions over all configs; "
                 "a smaller pilot tells nothing",
                 out->cost.contexts, 100 * out->budget / full.tokens);
    summary_int("contexts", out->cost.contexts);
    summary_int("answers", out->cost.answers);
    json_put_real(summary_json(), "loss", out->loss);
    if (!isnan(out->loss))
        log_info("expected loss of utility, compared with a plan that knows every quality: about %.4g", out->loss);
    if (out->cost.answers == 0)
        log_info(out->too_dear ? "nothing worth asking is within the budget" : "nothing is worth asking");
    else
        log_info("%d contexts, %lld answers: %.1f %% of the cost of all train questions over all configs",
                 out->cost.contexts, (long long)out->cost.answers, 100 * out->cost.tokens / full.tokens);
}

static int list_tests(struct aim_job *j, struct err *err)
{
    struct aim_tested tested;

    if (aim_test(j, &tested, err))
        return err->code;
    if (tested.n_unknown)
        log_warn("%d contexts of the manifest are not in CONTEXTS", tested.n_unknown);
    if (tested.n_untested)
        log_warn("%d compressed contexts have no test questions", tested.n_untested);
    summary_int("contexts", tested.n_rows);
    summary_int("answers", tested.n_answers);
    log_info("%d contexts, %d answers", tested.n_rows, tested.n_answers);
    return 0;
}

static int one_list(struct aim_job *j, const char *table, struct err *err)
{
    struct aim_out out = { .path = cfg.output, .budget = -1 };

    if (aim_table(j, table, err) || aim_list(j, &out, err))
        return err->code;
    aim_say(j, &out);
    return 0;
}

static int check_options(const char *table, struct err *err)
{
    if (cfg.test && (table || cfg.audit || cfg.run))
        return err_set(err, ERR_USAGE, "--test excludes TABLE, --audit and --run");
    if (cfg.audit && cfg.run)
        return err_set(err, ERR_USAGE, "--audit and --run exclude each other");
    if (cfg.run != (cfg.rounds > 0))
        return err_set(err, ERR_USAGE, cfg.run ? "--run needs --rounds" : "--rounds needs --run");
    return 0;
}

/* path: CONTEXTS, QUESTIONS, TABLE or NULL. */
static int run(char *const *path, bool *partial, struct err *err)
{
    struct aim_job j = { .opt = &cfg, .say_refused = profile_say_refused };

    if (check_options(path[2], err) || method_plugins_open(cfg.plugin, err))
        return err->code;
    if (cfg.run)
        return aim_rounds(&cfg, path, partial, err);
    int code = aim_read(&j, path, err);
    if (!code && !cfg.test)
        code = model_say_for(cfg.model, &j.contexts, path[0], err);
    if (!code)
        code = cfg.test ? list_tests(&j, err) : one_list(&j, path[2], err);
    *partial = j.n_refused > 0;
    aim_release(&j);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;
    bool partial = false;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    cfg.args = argv + 1;
    cfg.n_args = argc - 1;
    char *path[] = { argv[first], argv[first + 1], first + 2 < argc ? argv[first + 2] : NULL };
    summary_begin(&tool, argc, argv);
    int code = run(path, &partial, &err);
    return summary_end(code, partial ? 1 : 0, &err);
}

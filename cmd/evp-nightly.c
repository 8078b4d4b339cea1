/* evp-nightly - runs a night: from tonight's logs to the plan in force, one tool after the other.
 *
 * Each step is one of the tools, printed as the command line that a person would type (nightly/night_steps.c). A
 * journal says which steps are done (nightly/night_journal.c), so a night that was killed goes on where it was. A step
 * that fails ends the night; the plan in force stays in force.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cmd/options.h"
#include "nightly/night_journal.h"
#include "nightly/night_state.h"
#include "nightly/night_steps.h"
#include "nightly/run_tool.h"
#include "cmd/summary.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *config;
    double budget_s;
    bool again, dry_run;
    struct opt_common common;
} cfg = { .budget_s = -1 };

static const struct opt opts[] = {
    OPT_HEAD("Choice"),
    OPT_TEXT(0, "config", &cfg.config, "FILE", "what a night reads and does, as JSON (docs/formats/nightly.md)"),
    OPT_PERIOD(0, "budget", &cfg.budget_s, "SECONDS", 0, 1e9,
               "most time of the profiling device for this night, instead of the configuration's; 0: everything new is "
               "profiled"),
    OPT_BOOL(
        0, "again", &cfg.again,
        "begin anew, for another model, other weights or another chat template: what is placed leaves the tiers, and "
        "the profile and the plan are set aside"),
    OPT_DRY_RUN(&cfg.dry_run),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-nightly",
    .summary = "run a night: from tonight's logs to the plan in force",
    .operands = "",
    .min_operands = 0,
    .max_operands = 0,
    .about =
        "Imports the logs, profiles what is new, scores, plans against the plan in force, verifies, packs and loads, "
        "and writes a page. Each step is one of the tools, and is printed as the command line that a person would "
        "type.\n"
        "\n"
        "With a budget a quarter of it checks the plan in force on the newest questions (evp-drift), and the rest goes "
        "to random contexts (evp-profile --sample), more of them every night; the others are planned by predicted "
        "qualities.\n"
        "\n"
        "A night that was killed goes on where it was, with the same command. If a step fails, the plan in force stays "
        "in force, and the next night tries again. Two nights never work in the same folder.\n"
        "\n"
        "The folder nights/ keeps a journal of each night, with the summaries of its steps; nightly.prom has them in "
        "Prometheus' text format.",
    .examples = "  evp-nightly --config nightly.json --dry-run\n"
                "  evp-nightly --config nightly.json\n"
                "  evp-nightly --config nightly.json --budget 3h\n",
    .opts = opts,
    .common = &cfg.common,
};

/* ---- one step ---------------------------------------------------------------- */

/* The summary that a tool wrote, or NULL. */
static struct json *read_summary(const char *path)
{
    struct buf text = { 0 };
    struct err none;
    struct json *summary = NULL;

    if (file_exists(path) && file_read(&text, path, 16 << 20, &none) == 0)
        summary = json_parse(buf_str(&text), text.n, &none);
    buf_release(&text);
    return summary;
}

/* Status 1 of a tool: it left something out, which the next night tries again. If it failed before it came to results,
 * its summary lacks the first of the step's figures. */
static bool is_partial(const struct night_step_kind *kind, int status, const struct json *summary)
{
    const char *figures = kind->figures ? kind->figures : "";
    char first[32];

    snprintf(first, sizeof(first), "%.*s", (int)strcspn(figures, " "), figures);
    return status == 1 && summary && (!json_get(summary, "error") || json_get(json_get(summary, "result"), first));
}

/* The error that an exit status stands for. */
static enum err_code code_of(int status)
{
    static const enum err_code code[] = { ERR_FAIL, ERR_FAIL, ERR_USAGE, ERR_FORMAT, ERR_NET, ERR_DEVICE };

    return status >= 0 && status < (int)(sizeof(code) / sizeof(*code)) ? code[status] : ERR_FAIL;
}

/* Prints the figures of a step and its time. */
static void say_done(const struct night_step_kind *kind, const struct night_step *done)
{
    const struct json *result = json_get(done->summary, "result");
    const struct json *plans = json_get(result, "plans");
    char name[32], seconds[TEXT_SHORT];
    struct buf text = { 0 };

    for (const char *at = kind->figures; at && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        snprintf(name, sizeof(name), "%.*s", (int)n, at);
        at += n;
        double v = json_real(json_get(plans ? json_first(plans) : result, name));
        if (!isnan(v))
            buf_printf(&text, ", %s %.4g", name, v);
    }
    log_info("%s: %s%s", kind->name, text_seconds(seconds, done->seconds), buf_str(&text));
    buf_release(&text);
}

/* Runs a command whose summary goes to `path`, and notes what came of it. */
static int run_noted(struct night *n, const struct night_step_kind *kind, struct command *c, const char *path,
                     struct err *err)
{
    double start = clock_now();
    char *text = command_text(c);
    int status = command_run(c, err), code = status < 0 ? status : 0;
    struct json *summary = read_summary(path);

    if (status > 0 && !is_partial(kind, status, summary))
        code = err_set(err, code_of(status), "%s ended with status %d", c->at[0], status);
    struct night_step done = { kind->name, text ? text : "", status, code != 0, clock_now() - start, summary };
    struct err why;
    if (!code)
        say_done(kind, &done);
    if (status >= 0 && night_note(n, &done, &why) && !code) {
        *err = why;
        code = why.code;
    }
    json_free(summary);
    free(text);
    return code;
}

/* Seconds until a tool is ended; 0: never. */
static unsigned time_left(const struct night *n, const struct nightly *config)
{
    double left = config->hours * 3600 - (clock_utc() - n->started);

    return config->hours <= 0 ? 0 : left > 1 ? (unsigned)left : 1;
}

static int run_step(struct night *n, const struct nightly *config, const struct night_step_kind *kind, struct err *err)
{
    struct command c = { 0 };
    struct buf path = { 0 };
    int code = kind->words(config, &c, err);

    buf_printf(&path, "%s/%s.json", n->folder, kind->name);
    command_option(&c, "--summary", buf_str(&path));
    c.limit_s = time_left(n, config);
    if (!code && buf_failed(&path))
        code = err_nomem(err);
    if (!code && unlink(buf_str(&path)) && errno != ENOENT)
        code = err_set(err, ERR_IO, "cannot remove '%s': %s", buf_str(&path), strerror(errno));
    if (!code)
        code = run_noted(n, kind, &c, buf_str(&path), err);
    command_release(&c);
    buf_release(&path);
    return code;
}

/* ---- the night --------------------------------------------------------------- */

/* The step to go on with: the one after the last that was done. */
static int first_step(const struct night *n)
{
    int first = 0;

    for (int i = 0; night_steps[i].name; i++)
        if (night_find(n, night_steps[i].name))
            first = i + 1;
    return first;
}

/* Requests per second, of an import's figures. */
static void take_rate(struct nightly *config, const struct json *import)
{
    double rate = json_real(json_get(json_get(import, "result"), "requests_per_s"));

    if (config->rate < 0 && rate > 0)
        config->rate = rate;
}

static int run_steps(struct night *n, struct nightly *config, struct err *err)
{
    for (int i = first_step(n); night_steps[i].name; i++) {
        take_rate(config, night_find(n, "import"));
        if (night_planned(n) && night_put_in_force(err))
            return err->code;
        if (night_steps[i].needed && !night_steps[i].needed(config))
            continue;
        if (!run_step(n, config, &night_steps[i], err))
            continue;
        err_wrap(err, "step '%s'", night_steps[i].name);
        if (!night_steps[i].helps)
            return err->code;
        log_warn("%s; the night goes on without it", err->msg);
    }
    return 0;
}

/* The metrics before the journal, whose disk may be full: an alarm must not miss the night that could not write. */
static int note_end(struct night *n, const struct nightly *config, int status, struct err *err)
{
    struct err why;
    int code = night_metrics(n, status, config->metrics, err);

    if (night_end(n, status, config->keep, &why) && !code) {
        *err = why;
        code = why.code;
    }
    return code;
}

/* Returns 0, or 1: something was left out. */
static int run_night(struct night *n, struct nightly *config, struct err *err)
{
    struct err why;

    if (n->resumed)
        log_info("night %lld goes on where it was", (long long)n->number);
    if (night_metrics_begin(config->metrics, &why))
        log_warn("%s", why.msg);
    int code = night_heal(&n->healed, err) || (cfg.again && !n->resumed && night_begin_anew(config, err)) ||
                       night_take_model(config, err)
                   ? err->code
                   : 0;
    bool changed = !code && night_check_weights(config, err);
    code = changed ? err->code : code ? code : run_steps(n, config, err);
    int status = code ? err_exit_status(code) : night_is_partial(n) ? 1 : 0;
    if (code && !changed)
        log_info(
            "%s",
            night_planned(n) ? "the new plan is in force"
            : night_has_plan()
                ? "the last good plan stays in force; run the same command again once that is mended, or wait for the "
                  "next night"
                : "there is no plan yet; run the same command again once that is mended");
    if (note_end(n, config, status, &why) && !code) {
        *err = why;
        return why.code;
    }
    summary_int("night", n->number);
    summary_int("steps", n->steps.n);
    return code ? code : status;
}

/* ---- without doing anything ---------------------------------------------------- */

static int say_step(const struct night *n, const struct nightly *config, const struct night_step_kind *kind,
                    struct err *err)
{
    const struct json *before = night_find_before(n, kind->name);
    struct command c = { 0 };
    char seconds[TEXT_SHORT];
    int code = kind->words(config, &c, err);
    char *text = code ? NULL : command_text(&c);

    if (!code && !text)
        code = err_nomem(err);
    if (!code && before)
        printf("%s  # %s last night\n", text, text_seconds(seconds, json_real(json_get(before, "seconds"))));
    else if (!code)
        printf("%s\n", text);
    free(text);
    command_release(&c);
    return code;
}

/* What profiling the contexts of the last import would take, which evp-profile says itself. */
static int forecast(const struct nightly *config, struct err *err)
{
    struct command c = { 0 };
    int i = 0;

    while (strcmp(night_steps[i].name, "profile") != 0)
        i++;
    if (!file_exists("mine/contexts.jsonl"))
        return 0;
    int code = night_steps[i].words(config, &c, err);
    command_add(&c, "--dry-run", NULL);
    if (!code && command_run(&c, err) < 0)
        code = err->code;
    command_release(&c);
    return code;
}

static int dry_run(struct nightly *config, struct err *err)
{
    struct night n;
    int code = night_open(&n, true, err);

    if (!code)
        take_rate(config, night_find(&n, "import") ? night_find(&n, "import") : night_find_before(&n, "import"));
    for (int i = code ? 0 : first_step(&n); night_steps[i].name && !code; i++)
        if (!night_steps[i].needed || night_steps[i].needed(config))
            code = say_step(&n, config, &night_steps[i], err);
    if (!code)
        code = forecast(config, err);
    night_close(&n);
    return code;
}

/* ---- the whole ------------------------------------------------------------------ */

/* --summary is a path from where the tool was called. */
static int keep_summary_path(struct err *err)
{
    static char *path;
    char *here = NULL;

    if (!cfg.common.summary || *cfg.common.summary == '/')
        return 0;
    here = getcwd(NULL, 0);
    path = here ? file_join(here, cfg.common.summary) : NULL;
    free(here);
    cfg.common.summary = path;
    return path ? 0 : err_nomem(err);
}

/* Goes to the state folder, whose path begins at the configuration's own. */
static int enter(const struct nightly *config, struct err *err)
{
    const char *slash = strrchr(cfg.config, '/');
    char *folder = slash ? strndup(cfg.config, (size_t)(slash - cfg.config) + 1) : strdup("./");
    char *state = NULL;
    int code = folder ? keep_summary_path(err) : err_nomem(err);

    if (!code)
        state = *config->state == '/' ? strdup(config->state) : file_join(folder, config->state);
    if (!code && !state)
        code = err_nomem(err);
    if (!code && !cfg.dry_run)
        code = file_mkdir(state, err);
    if (!code && chdir(state))
        code = err_set(err, ERR_IO, "cannot enter the state folder '%s': %s", state, strerror(errno));
    char *here = code ? NULL : getcwd(NULL, 0);
    if (here)
        log_info("$ cd %s", here);
    free(here);
    free(folder);
    free(state);
    return code;
}

/* The metrics of a night that could not begin; returns why it could not. */
static int note_failure(const struct night *n, const struct nightly *config, const struct err *err)
{
    struct err why;

    if (night_metrics(n, err_exit_status(err->code), config->metrics, &why))
        log_warn("%s", why.msg);
    return err->code;
}

static int run(struct err *err)
{
    struct nightly config;
    struct night n;

    if (!cfg.config)
        return err_set(err, ERR_USAGE, "--config is missing");
    if (nightly_read(&config, cfg.config, err))
        return err->code;
    config.verbose = cfg.common.verbose > 0;
    config.budget_s = cfg.budget_s >= 0 ? cfg.budget_s : config.budget_s;
    int code = enter(&config, err);
    if (!code && cfg.dry_run)
        code = dry_run(&config, err);
    else if (!code) {
        code = night_open(&n, false, err);
        if (!code)
            code = run_night(&n, &config, err);
        else if (code != ERR_FAIL) // that is another night, which has metrics of its own
            code = note_failure(&n, &config, err);
        night_close(&n);
    } else if (!cfg.dry_run && *config.metrics == '/') {
        code = note_failure(&(struct night){ .lock = -1 }, &config, err);
    }
    nightly_release(&config);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    umask(077);               // for the tools, too: prompts and caches of users
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is an error to report, for the tools too
    summary_begin(&tool, argc, argv);
    int code = run(&err);
    return summary_end(code < 0 ? code : 0, code > 0 ? code : 0, &err);
}

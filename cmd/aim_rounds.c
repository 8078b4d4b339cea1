/* aim_rounds.c - evp-aim --rounds N --run: a list, evp-profile, evp-score, and again, on one machine.
 *
 * The folder has cells-K.jsonl, the lists (0 is the pilot); profile.h5; table.h5, scored after the last list. An existing
 * list is not made again, and evp-profile computes no answer twice, so the same command continues after an interruption.
 * The cost so far is computed from the lists.
 */
#include "cmd/aim_rounds.h"

#include "base/array.h"
#include "base/log.h"
#include "base/unconst.h"
#include "cmd/next.h"
#include "cmd/profile_say.h"
#include "formats/cells.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const default_budget = "12%";

struct rounds {
    const struct aim_options *opt;
    char *const *path; // CONTEXTS, QUESTIONS, TABLE or NULL
    char *profile, *table;
    double spent; // in tokens of prefill
    bool partial; // some contexts could not be profiled
};

/* ---- other tools ---------------------------------------------------------------- */

struct arguments {
    const char **at;
    int n, cap;
};

/* Splits options at blanks; `text` is changed and must outlive the arguments. */
static int add_options(struct arguments *a, char *text)
{
    for (char *rest = NULL, *one = strtok_r(text, " ", &rest); one; one = strtok_r(NULL, " ", &rest))
        if (ARRAY_PUSH(a, one))
            return -1;
    return 0;
}

/* The path of a tool in this tool's folder; NULL without memory. The caller frees. */
static char *find_tool(const char *name)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    struct buf path = { 0 };

    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    buf_printf(&path, "%s/%s", slash ? self : ".", name);
    char *taken = buf_take(&path);
    buf_release(&path);
    return taken;
}

static void say_command(const struct arguments *a)
{
    struct buf text = { 0 };

    for (int i = 0; i < a->n && a->at[i]; i++)
        buf_printf(&text, " %s", a->at[i]);
    log_info("$%s", buf_str(&text));
    buf_release(&text);
}

/* Runs a tool; the first argument is its name, NULL ends the list. Status 1 of evp-profile: contexts were left out. */
static int run_tool(struct rounds *r, const struct arguments *a, struct err *err)
{
    char *tool = find_tool(a->at[0]);
    int status = 0;

    if (!tool)
        return err_nomem(err);
    say_command(a);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* a child left alone would hold the lock of FILE */
        execv(tool, (char *const *)unconst(a->at));
        _exit(127);
    }
    free(tool);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            child = -1;
    if (child < 0)
        return err_set(err, ERR_FAIL, "cannot run %s: %s", a->at[0], strerror(errno));
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == 0)
        return 0;
    if (code == 1 && strcmp(a->at[0], "evp-profile") == 0 && file_exists(r->profile)) {
        r->partial = true;
        return 0;
    }
    if (code < 0)
        return err_set(err, ERR_FAIL, "%s was killed; run the same command again to go on", a->at[0]);
    return err_set(err, ERR_FAIL, "%s ended with status %d", a->at[0], code);
}

static int profile(struct rounds *r, const char *list, struct err *err)
{
    char *options = strdup(r->opt->profile_options ? r->opt->profile_options : ""), tokens[16];
    struct arguments a = { 0 };
    const char *const fixed[] = { "evp-profile", r->path[0], r->path[1],         "--cells", list,
                                  "-o",          r->profile, "--max-new-tokens", tokens };
    bool failed = !options;

    snprintf(tokens, sizeof(tokens), "%d", r->opt->max_new_tokens);
    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
        failed = failed || ARRAY_PUSH(&a, fixed[i]);
    if (r->opt->model)
        failed = failed || ARRAY_PUSH(&a, "--model") || ARRAY_PUSH(&a, r->opt->model);
    if (r->opt->chat)
        failed = failed || ARRAY_PUSH(&a, "--chat-template") || ARRAY_PUSH(&a, r->opt->chat);
    if (r->opt->truncate)
        failed = failed || ARRAY_PUSH(&a, "--truncate");
    failed = failed || add_options(&a, options) || ARRAY_PUSH(&a, NULL);
    int code = failed ? err_nomem(err) : run_tool(r, &a, err);
    free(a.at);
    free(options);
    return code;
}

static int score(struct rounds *r, struct err *err)
{
    char *options = strdup(r->opt->score_options ? r->opt->score_options : "");
    struct arguments a = { 0 };
    bool failed = !options || ARRAY_PUSH(&a, "evp-score") || ARRAY_PUSH(&a, r->profile);

    if (r->path[2])
        failed = failed || ARRAY_PUSH(&a, r->path[2]);
    failed = failed || ARRAY_PUSH(&a, "-o") || ARRAY_PUSH(&a, r->table);
    if (r->opt->prior)
        failed = failed || ARRAY_PUSH(&a, "--prior") || ARRAY_PUSH(&a, r->opt->prior);
    failed = failed || add_options(&a, options) || ARRAY_PUSH(&a, NULL);
    int code = failed ? err_nomem(err) : run_tool(r, &a, err);
    free(a.at);
    free(options);
    return code;
}

/* ---- one round --------------------------------------------------------------------- */

/* *cost: of a list, in tokens of prefill; *answers: how many it asks for. */
static int cost_of(const struct aim_job *j, const char *path, double *cost, int *answers, struct err *err)
{
    struct cells cells;

    if (cells_read(&cells, path, &j->contexts, &j->questions, err))
        return err->code;
    *answers = cells.wanted.n;
    *cost = (double)cells.wanted.n * j->opt->answer_tokens;
    for (int c = 0; c < cells.contexts.n; c++) {
        int row = map_find(&j->table.ids, cells.contexts.at[c].key, cells.contexts.at[c].n);
        *cost += row < 0 ? 0 : (double)j->table.n_tokens[row];
    }
    cells_release(&cells);
    return 0;
}

/* Cost of list k of n as a share of the budget that is left: with three lists a half, then two thirds, then all. */
static double share_of(int k, int n)
{
    double left = n - k + 1;

    return left * 2 / (left * (left + 1));
}

/* Makes list k unless it exists. *answers: how many it asks for. */
static int make_list(struct rounds *r, int k, const char *list, int *answers, struct err *err)
{
    struct aim_job j = { .opt = r->opt, .say_refused = profile_say_refused };
    double cost = 0, budget = 0;
    int code = aim_read(&j, r->path, err);

    if (!code)
        code = aim_table(&j, k > 0 && file_exists(r->table) ? r->table : r->path[2], err);
    if (!code)
        code = aim_budget(&j, r->opt->budget ? r->opt->budget : default_budget, &budget, err);
    if (!code && !file_exists(list)) {
        double left = fmax(budget - r->spent, 0);
        struct aim_out out = { .path = list, .budget = k == 0 ? left : left * share_of(k, r->opt->rounds) };
        code = aim_list(&j, &out, err);
        if (!code)
            aim_say(&j, &out);
    }
    if (!code)
        code = cost_of(&j, list, &cost, answers, err);
    r->spent += cost;
    aim_release(&j);
    return code;
}

static int run_round(struct rounds *r, int k, int *answers, struct err *err)
{
    struct buf name = { 0 };

    buf_printf(&name, "%s/cells-%d.jsonl", r->opt->output, k);
    int code = buf_failed(&name) ? err_nomem(err) : make_list(r, k, buf_str(&name), answers, err);
    if (!code && *answers > 0)
        code = profile(r, buf_str(&name), err);
    if (!code && *answers > 0)
        code = score(r, err);
    buf_release(&name);
    return code;
}

int aim_rounds(const struct aim_options *opt, char *const *path, bool *partial, struct err *err)
{
    struct rounds r = { .opt = opt, .path = path };
    bool pilot = !path[2] && !opt->prior;

    if (!opt->output)
        return err_set(err, ERR_USAGE, "--run needs --output, the name of a folder");
    if (!opt->tiers)
        return err_set(err, ERR_USAGE, "--tiers is missing");
    int code = file_mkdir(opt->output, err);
    r.profile = file_join(opt->output, "profile.h5");
    r.table = file_join(opt->output, "table.h5");
    if (!code && (!r.profile || !r.table))
        code = err_nomem(err);
    for (int k = pilot ? 0 : 1, answers = 1; k <= opt->rounds && answers > 0 && !code; k++)
        code = run_round(&r, k, &answers, err);
    if (!code)
        next_say("evp-plan", r.table, "--tiers", opt->tiers, "-o", "manifest.jsonl", NULL);
    *partial = r.partial;
    free(r.profile);
    free(r.table);
    return code;
}

/* aim_rounds.c - evp-aim --rounds N --run: a list, evp-profile, evp-score, and again, on one machine.
 *
 * The folder has cells-K.jsonl, the lists (0 is the pilot); profile.h5; table.h5, scored after the last list. An existing
 * list is not made again, and evp-profile computes no answer twice, so the same command continues after an interruption.
 * The cost so far is computed from the lists.
 */
#include "cmd/aim_rounds.h"

#include "base/file.h"
#include "cmd/next.h"
#include "cmd/profile_say.h"
#include "cmd/run_tool.h"
#include "formats/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const default_budget = "12%";

struct rounds {
    const struct aim_options *opt;
    char *const *path; // CONTEXTS, QUESTIONS, TABLE or NULL
    char *profile, *table;
    double spent; // in tokens of prefill
    bool partial; // some contexts could not be profiled
};

/* ---- other tools ---------------------------------------------------------------- */

static int profile(struct rounds *r, const char *list, struct err *err)
{
    struct command c = { 0 };
    char tokens[16];

    snprintf(tokens, sizeof(tokens), "%d", r->opt->max_new_tokens);
    command_add(&c, "evp-profile", r->path[0], r->path[1], "--cells", list, "-o", r->profile, "--max-new-tokens",
                tokens, NULL);
    command_option(&c, "--model", r->opt->model);
    command_option(&c, "--plugin", r->opt->plugin);
    command_option(&c, "--chat-template", r->opt->chat);
    if (r->opt->truncate)
        command_add(&c, "--truncate", NULL);
    command_split(&c, r->opt->profile_options);
    return command_finish(&c, r->profile, &r->partial, err);
}

static int score(struct rounds *r, struct err *err)
{
    struct command c = { 0 };

    command_add(&c, "evp-score", r->profile, r->path[2], NULL); /* r->path[2] may end the list */
    command_option(&c, "-o", r->table);
    command_option(&c, "--prior", r->opt->prior);
    command_split(&c, r->opt->score_options);
    return command_finish(&c, r->profile, &r->partial, err);
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

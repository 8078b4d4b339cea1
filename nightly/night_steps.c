/* night_steps.c - command lines from the configuration and from what the state folder holds. */
#include "nightly/night_steps.h"

#include "base/file.h"
#include "nightly/night_state.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- words ---------------------------------------------------------------------- */

static void add_options(struct command *c, const struct nightly *n, const char *tool)
{
    for (const struct json *o = json_first(json_get(n->options, tool)); o; o = json_next(o))
        command_add(c, json_text(o), NULL);
}

static void add_number(struct command *c, const char *option, double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.12g", value);
    command_add(c, option, text, NULL);
}

/* The night prints the figures of a step; the tool only warnings. */
static void add_quiet(struct command *c, const struct nightly *n)
{
    if (!n->verbose)
        command_add(c, "-q", NULL);
}

static void add_model(struct command *c, const struct nightly *n)
{
    command_add(c, "--model", n->model, NULL);
    add_options(c, n, "model");
}

static void add_forget(struct command *c, const struct nightly *n)
{
    if (n->forget_days > 0)
        add_number(c, "--forget", (double)n->forget_days);
}

/* Adds the files that a list of patterns names, each after `option` unless that is NULL. Without an option there must
 * be one. */
static int add_files(struct command *c, const struct json *patterns, const char *option, struct err *err)
{
    size_t found = 0;

    for (const struct json *p = json_first(patterns); p; p = json_next(p)) {
        glob_t g = { 0 };
        int code = glob(json_text(p), GLOB_NOMAGIC, NULL, &g);
        for (size_t i = 0; code == 0 && i < g.gl_pathc; i++)
            command_add(c, option ? option : g.gl_pathv[i], option ? g.gl_pathv[i] : NULL, NULL);
        found += code == 0 ? g.gl_pathc : 0;
        globfree(&g);
        if (code == GLOB_NOSPACE)
            return err_nomem(err);
    }
    if (found == 0 && !option)
        return err_set(err, ERR_FORMAT, "no file is named like '%s'", json_text(json_first(patterns)));
    return 0;
}

/* ---- when ------------------------------------------------------------------------ */

static bool watches(const struct nightly *n)
{
    return n->budget_s > 0 && file_exists(TABLE) && file_exists(MANIFEST);
}

/* evp-drift may have failed tonight. */
static bool drifted(const struct nightly *n)
{
    return watches(n) && file_exists(DRIFTED);
}

/* ---- the steps ------------------------------------------------------------------- */

static int import(const struct nightly *n, struct command *c, struct err *err)
{
    command_add(c, "evp-import", "--requests", "--partial", "--halves", NULL);
    if (add_files(c, n->logs, NULL, err))
        return err->code;
    add_model(c, n);
    add_forget(c, n);
    add_quiet(c, n);
    add_options(c, n, "evp-import");
    command_add(c, "-o", MINE, NULL);
    return 0;
}

/* Served answers cost nothing. Without them a quarter of the budget tells whether the plan still holds. */
static int drift(const struct nightly *n, struct command *c, struct err *err)
{
    if (unlink(DRIFTED) && errno != ENOENT)
        return err_set(err, ERR_IO, "cannot remove '%s': %s", DRIFTED, strerror(errno));
    command_add(c, "evp-drift", TABLE, MANIFEST, "--questions", ASKED, NULL);
    if (n->served && add_files(c, n->served, "--served", err))
        return err->code;
    if (!n->served) {
        command_add(c, "--contexts", CONTEXTS, NULL);
        add_model(c, n);
        add_number(c, "--budget", n->budget_s / 4);
    }
    add_number(c, "--false-alarms", n->false_alarms);
    command_add(c, "--state", DRIFT, NULL);
    add_quiet(c, n);
    add_options(c, n, "evp-drift");
    command_add(c, "-o", DRIFTED, NULL);
    return 0;
}

static void begin_profile(const struct nightly *n, struct command *c)
{
    command_add(c, "evp-profile", CONTEXTS, ASKED, NULL);
    add_model(c, n);
    add_forget(c, n);
}

/* It may take hours: it says how long, and how far it is. */
static void end_profile(const struct nightly *n, struct command *c)
{
    add_options(c, n, "evp-profile");
    command_add(c, "-o", PROFILE, NULL);
}

static int profile_drifted(const struct nightly *n, struct command *c, struct err *err)
{
    (void)err;
    begin_profile(n, c);
    command_add(c, "--cells", DRIFTED, NULL);
    end_profile(n, c);
    return 0;
}

/* With a budget as many random contexts as three quarters of it allow: the first ones are those of the nights before,
 * so the sample grows. */
static int profile(const struct nightly *n, struct command *c, struct err *err)
{
    char seconds[32];

    (void)err;
    begin_profile(n, c);
    command_option(c, "--configs", n->configs);
    if (n->budget_s > 0) {
        snprintf(seconds, sizeof(seconds), "%.12gs", n->budget_s * 3 / 4);
        command_add(c, "--sample", seconds, NULL);
    }
    end_profile(n, c);
    return 0;
}

static int score(const struct nightly *n, struct command *c, struct err *err)
{
    (void)err;
    command_add(c, "evp-score", PROFILE, NULL);
    add_quiet(c, n);
    add_options(c, n, "evp-score");
    command_add(c, "-o", TABLE, NULL);
    return 0;
}

static void add_previous(const struct nightly *n, struct command *c)
{
    if (!file_exists(MANIFEST))
        return;
    command_add(c, "--previous", MANIFEST, NULL);
    add_number(c, "--move-cost", n->move_cost);
}

/* Does the configuration have an option for a tool? */
static bool says(const struct nightly *n, const char *tool, const char *option)
{
    for (const struct json *o = json_first(json_get(n->options, tool)); o; o = json_next(o))
        if (strncmp(json_text(o), option, strlen(option)) == 0)
            return true;
    return false;
}

/* Uses that come, and what they wait, unless the user says otherwise; a live plan knows no waits. */
static void add_load(const struct nightly *n, struct command *c)
{
    char rate[32];

    if (file_exists(BEFORE) && !says(n, "evp-plan", "--access-before"))
        command_add(c, "--access-before", BEFORE, NULL);
    if (!(n->rate > 0) || says(n, "evp-plan", "--rate") || says(n, "evp-plan", "--online") ||
        says(n, "evp-plan", "--parallel-reads"))
        return;
    snprintf(rate, sizeof(rate), "%.4g", n->rate);
    command_add(c, "--rate", rate, NULL);
    add_number(c, "--gpus", (double)n->gpus);
}

static int plan(const struct nightly *n, struct command *c, struct err *err)
{
    (void)err;
    command_add(c, "evp-plan", TABLE, "--tiers", n->tiers, "--access", ACCESS, NULL);
    add_load(n, c);
    add_number(c, "--alpha", n->alpha);
    add_number(c, "--pack-weight", n->pack_weight);
    add_previous(n, c);
    add_quiet(c, n);
    add_options(c, n, "evp-plan");
    command_add(c, "-o", TONIGHT, NULL);
    return 0;
}

static int verify(const struct nightly *n, struct command *c, struct err *err)
{
    (void)err;
    command_add(c, "evp-plan", TABLE, "--verify", TONIGHT, NULL);
    add_previous(n, c);
    add_quiet(c, n);
    return 0;
}

static int pack(const struct nightly *n, struct command *c, struct err *err)
{
    (void)err;
    command_add(c, "evp-pack", TONIGHT, CONTEXTS, NULL);
    add_model(c, n);
    command_add(c, "--tiers", n->tiers, "--prune", NULL);
    command_option(c, "--namespace", n->name_space);
    add_quiet(c, n);
    add_options(c, n, "evp-pack");
    command_add(c, "-o", PAYLOADS, NULL);
    return 0;
}

static int load(const struct nightly *n, struct command *c, struct err *err)
{
    (void)err;
    command_add(c, "evp-load", TONIGHT, "--payloads", PAYLOADS, "--receipt", RECEIPT, "--wait", "600", "--verify",
                NULL);
    command_option(c, "--namespace", n->name_space);
    add_quiet(c, n);
    add_options(c, n, "evp-load");
    return 0;
}

static int report(const struct nightly *n, struct command *c, struct err *err)
{
    (void)err;
    command_add(c, "evp-report", TABLE, MANIFEST, NULL);
    if (file_exists(PREVIOUS))
        command_add(c, PREVIOUS, NULL);
    if (file_exists(RECEIPT))
        command_add(c, RECEIPT, NULL);
    add_quiet(c, n);
    add_options(c, n, "evp-report");
    command_add(c, "-o", REPORT, NULL);
    return 0;
}

const struct night_step_kind night_steps[] = {
    { "import", NULL, import, "contexts questions requests", false },
    { "drift", watches, drift, "contexts answers moved", true },
    { "profile-drifted", drifted, profile_drifted, "contexts answers", true },
    { "profile", NULL, profile, "contexts answers contexts_later", false },
    { "score", NULL, score, NULL, false },
    { "plan", NULL, plan, "contexts compressed ttft_s ttft_all_s new_share quality quality_test", false },
    { "verify", NULL, verify, NULL, false },
    { "pack", NULL, pack, "written present placed failed", false },
    { "load", NULL, load, "insert keep recompress move evict skipped", false },
    { "report", NULL, report, NULL, true },
    { NULL, NULL, NULL, NULL, false },
};

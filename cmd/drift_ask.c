/* drift_ask.c - lists of questions, computed and scored by the tools that do nothing else. */
#include "cmd/drift_ask.h"

#include "base/file.h"
#include "base/log.h"
#include "nightly/run_tool.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST = 4 }; // questions after which most contexts without drift are decided

static const char *const file_names[] = { "cells.jsonl", "answers.h5", "table.h5" };
enum { CELLS, ANSWERS, SCORED, N_FILES };

struct asking {
    struct drift *d;
    struct drift_asking *a;
    char *path[N_FILES];
};

/* ---- what the answers must agree with ------------------------------------------- */

static int check_inputs(struct drift *d, struct drift_asking *a, struct err *err)
{
    struct contexts contexts = { 0 };
    int code = contexts_read(&contexts, a->contexts, err);

    if (!code)
        code = drift_check_contexts(d, &contexts, a->truncate, err);
    contexts_release(&contexts);
    if (!code)
        code = drift_check_model(d->table, a->model, a->chat, err);
    if (!code && a->budget > 0)
        code = drift_budget(d, a->budget, err);
    a->n_all = drift_all_answers(d);
    return code;
}

/* ---- other tools ------------------------------------------------------------------- */

static int run_tool(struct asking *k, struct command *c, struct err *err)
{
    char threads[16];

    snprintf(threads, sizeof(threads), "%d", k->a->threads);
    command_add(c, "--backend", k->a->backend, "--threads", threads, k->a->quiet ? "--quiet" : NULL, NULL);
    return command_finish(c, k->path[ANSWERS], &k->a->partial, err);
}

static int profile(struct asking *k, struct err *err)
{
    const struct drift_asking *a = k->a;
    struct command c = { 0 };
    char tokens[16];

    command_add(&c, "evp-profile", a->contexts, a->questions, "--cells", k->path[CELLS], "-o", k->path[ANSWERS], NULL);
    snprintf(tokens, sizeof(tokens), "%lld", (long long)k->d->table->max_new_tokens);
    command_option(&c, "--max-new-tokens", k->d->table->max_new_tokens > 0 ? tokens : NULL);
    command_option(&c, "--model", a->model);
    command_option(&c, "--chat-template", a->chat);
    if (a->truncate)
        command_add(&c, "--truncate", NULL);
    command_split(&c, a->profile_options);
    return run_tool(k, &c, err);
}

static int score(struct asking *k, struct err *err)
{
    struct command c = { 0 };

    command_add(&c, "evp-score", k->path[ANSWERS], "-o", k->path[SCORED], NULL);
    command_option(&c, "--embedder", k->a->embedder);
    return run_tool(k, &c, err);
}

/* ---- rounds -------------------------------------------------------------------------- */

static void take_context(struct asking *k, const struct table *t, const struct map *rows, struct drift_context *c,
                         struct drift_round round)
{
    int config = table_find_config(t, k->d->table->config_name[c->config]);

    for (int i = round.from; i < round.to && i < c->n_ask && config >= 0; i++) {
        const struct question *q = &k->d->questions->at[c->question[i]];
        int row = map_find(rows, q->id, strlen(q->id));
        const float *kept = k->d->facts ? t->facts_kept : t->similarity;
        double x = row < 0 ? (double)NAN : (double)kept[table_answer(t, row, config)];
        if (isnan(x))
            continue;
        k->a->n_answers += 2;
        drift_take(k->d, c, (struct drift_answer){ x, q->asked_at });
    }
}

static int check_tokens(const struct drift *d, const struct table *t, struct err *err)
{
    for (int i = 0; i < d->n; i++) {
        int row = map_find(&t->ids, d->at[i].id, strlen(d->at[i].id));
        if (row >= 0 && strcmp(t->context_token_digest[row], d->table->context_token_digest[d->at[i].row]) != 0)
            return err_set(err, ERR_FORMAT,
                           "context '%.200s' has other tokens in CONTEXTS than in the table: another text",
                           d->at[i].id);
    }
    return 0;
}

static int take_round(struct asking *k, struct drift_round round, struct err *err)
{
    struct table t = { 0 };
    struct table_rows rows = { 0 };
    int code = table_read(&t, k->path[SCORED], TABLE_ALL, err);

    if (!code)
        code = drift_check_embedder(k->d, t.embedder_digest, err);
    if (!code)
        code = table_rows_add(&rows, &t, err);
    if (!code && !k->a->truncate && check_tokens(k->d, &t, err)) {
        struct err ignored;
        code = err->code;
        if (drift_ask_clean(k->a, &ignored)) /* nobody needs these answers */
            log_debug("%s", ignored.msg);
    }
    for (int i = 0; i < k->d->n && !code; i++)
        if (drift_undecided(&k->d->at[i]))
            take_context(k, &t, &rows.questions, &k->d->at[i], round);
    table_rows_release(&rows);
    table_release(&t);
    return code;
}

static int run_round(struct asking *k, struct drift_round round, struct err *err)
{
    int n;

    if (drift_write_round(k->d, k->path[CELLS], round, &n, err))
        return err->code;
    if (n == 0)
        return 0;
    log_info("%d contexts are asked %s questions", n, round.from ? "more" : "new");
    if (profile(k, err) || score(k, err))
        return err->code;
    return take_round(k, round, err);
}

int drift_ask(struct drift *d, struct drift_asking *a, struct err *err)
{
    struct asking k = { .d = d, .a = a };
    int code = check_inputs(d, a, err);

    for (int i = 0; i < N_FILES; i++) {
        k.path[i] = file_join(a->dir, file_names[i]);
        if (!k.path[i] && !code)
            code = err_nomem(err);
    }
    if (!code)
        code = run_round(&k, (struct drift_round){ 0, FIRST }, err);
    if (!code)
        code = run_round(&k, (struct drift_round){ FIRST, INT_MAX }, err);
    if (!code && !file_exists(k.path[ANSWERS]))
        unlink(k.path[CELLS]); // nothing was asked
    for (int i = 0; i < N_FILES; i++)
        free(k.path[i]);
    return code;
}

int drift_ask_clean(const struct drift_asking *a, struct err *err)
{
    DIR *dir = opendir(a->dir);
    const struct dirent *d;
    int code = dir ? 0 : err_set(err, ERR_IO, "cannot open folder '%s': %s", a->dir, strerror(errno));

    while (!code && (d = readdir(dir)))
        if (d->d_name[0] != '.' && unlinkat(dirfd(dir), d->d_name, 0) && errno != ENOENT)
            code = err_set(err, ERR_IO, "cannot remove '%s/%s': %s", a->dir, d->d_name, strerror(errno));
    if (dir)
        closedir(dir);
    return code;
}

/* night_state.c - the state folder: what of it is damaged, whose model it is, which plan is in force. */
#include "nightly/night_state.h"

#include "base/file.h"
#include "base/log.h"
#include "base/rows.h"
#include "nightly/run_tool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROFILE_BEFORE PROFILE ".before"

/* ---- damage ---------------------------------------------------------------------- */

/* What every night reads of the nights before, and what stands in its way where it is something else. */
static const struct kept {
    const char *path;
    enum { READ, WRITTEN, FOLDER } as;
} kept[] = {
    { PROFILE, READ },    { PROFILE_BEFORE, READ }, { TABLE, READ },       { MANIFEST, READ },  { TONIGHT, READ },
    { DRIFT, READ },      { REPORT, WRITTEN },      { PREVIOUS, WRITTEN }, { MODEL, WRITTEN },  { DRIFTED, WRITTEN },
    { RECEIPT, WRITTEN }, { CONTEXTS, WRITTEN },    { ASKED, WRITTEN },    { ACCESS, WRITTEN }, { BEFORE, WRITTEN },
    { MINE, FOLDER },     { PAYLOADS, FOLDER },
};
enum { N_KEPT = sizeof(kept) / sizeof(*kept) };

/* Status of `evp-show --check` for those of the files that are there, one or all (NULL); 0: all are good. */
static int check(const struct kept *one, struct err *err)
{
    struct command c = { .quiet = true };
    int status = 0;

    command_add(&c, "evp-show", "--check", "-q", NULL);
    for (int i = 0; i < N_KEPT; i++)
        if (kept[i].as == READ && (!one || one == &kept[i]) && file_exists(kept[i].path))
            command_add(&c, kept[i].path, NULL);
    if (c.n > 3)
        status = command_run(&c, err);
    command_release(&c);
    return status;
}

static int put_aside(const char *path, bool *healed, struct err *err)
{
    char to[64];

    snprintf(to, sizeof(to), "%s.damaged", path);
    if (rename(path, to))
        return err_set(err, ERR_IO, "cannot rename '%s', which is damaged, to '%s': %s", path, to, strerror(errno));
    log_warn("'%s' is damaged, and is now called '%s'", path, to);
    *healed = true;
    return 0;
}

/* Is it something that no night made? */
static bool is_foreign(const struct kept *k)
{
    return file_exists(k->path) && file_is_dir(k->path) != (k->as == FOLDER);
}

int night_heal(bool *healed, struct err *err)
{
    for (int i = 0; i < N_KEPT; i++)
        if (is_foreign(&kept[i]) && put_aside(kept[i].path, healed, err))
            return err->code;
    const int damaged = err_exit_status(ERR_FORMAT);
    int status = check(NULL, err);
    for (int i = 0; i < N_KEPT && status == damaged; i++) {
        int one = kept[i].as == READ ? check(&kept[i], err) : 0;
        if (one < 0 || (one == damaged && put_aside(kept[i].path, healed, err)))
            return err->code;
    }
    if (status < 0)
        return err->code;
    const bool lost = !file_exists(PROFILE);
    if (lost && file_exists(PROFILE_BEFORE))
        log_warn("'%s' is that of the night before", PROFILE);
    else if (!lost)
        unlink(PROFILE_BEFORE);
    if (link(lost ? PROFILE_BEFORE : PROFILE, lost ? PROFILE : PROFILE_BEFORE) && errno != ENOENT)
        log_warn("cannot keep a second name of '%s': %s", PROFILE, strerror(errno));
    return 0;
}

/* ---- the model and the plan -------------------------------------------------------- */

/* Takes the payloads of the plan in force from the tiers: of its namespace, or of its model, which its header names. */
static int retire(const struct nightly *n, struct err *err)
{
    struct command c = { 0 };
    struct rows_in in;

    if (rows_open(&in, MANIFEST, "manifest", err))
        return err->code;
    const char *digest = json_text(json_get(in.header, "model_digest"));
    command_add(&c, "evp-load", MANIFEST, "--retire",
                n->name_space ? n->name_space
                : digest      ? digest
                              : "",
                "--wait", "600", NULL);
    int status = command_run(&c, err);
    command_release(&c);
    rows_close(&in);
    return status <= 0 ? status
                       : err_set(err, ERR_FAIL, "evp-load ended with status %d: what is placed stays placed", status);
}

int night_begin_anew(const struct nightly *n, struct err *err)
{
    static const char *const aside[] = { PROFILE, MANIFEST }, *const gone[] = { PROFILE_BEFORE, TABLE, DRIFT,  TONIGHT,
                                                                                PREVIOUS,       MODEL, RECEIPT };

    if (file_exists(MANIFEST) && retire(n, err))
        return err->code;
    for (size_t i = 0; i < sizeof(aside) / sizeof(*aside); i++) {
        char to[64];
        snprintf(to, sizeof(to), "%s.old", aside[i]);
        if (rename(aside[i], to) && errno != ENOENT)
            return err_set(err, ERR_IO, "cannot rename '%s' to '%s': %s", aside[i], to, strerror(errno));
    }
    for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++)
        if (unlink(gone[i]) && errno != ENOENT)
            return err_set(err, ERR_IO, "cannot remove '%s': %s", gone[i], strerror(errno));
    return 0;
}

int night_take_model(const struct nightly *n, struct err *err)
{
    struct buf is = { 0 }, line = { 0 };
    int code = file_exists(MODEL) ? file_read(&is, MODEL, 4096, err) : 0;

    buf_printf(&line, "%s\n", n->model);
    if (!code && buf_failed(&line))
        code = err_nomem(err);
    if (!code && (is.n == 0 || is.at[is.n - 1] != '\n')) // none, or it was cut
        code = file_write(MODEL, line.at, line.n, err);
    else if (!code && strcmp(buf_str(&is), line.at) != 0) {
        code = err_set(
            err, ERR_FORMAT,
            "the state folder belongs to the model '%.*s', not '%s': give the new model a folder of its own, or "
            "begin anew in this one with evp-nightly --again",
            (int)strcspn(buf_str(&is), "\n"), buf_str(&is), n->model);
    }
    buf_release(&is);
    buf_release(&line);
    return code;
}

int night_check_weights(const struct nightly *n, struct err *err)
{
    struct command c = { .quiet = true };

    if (!file_exists(PROFILE))
        return 0;
    command_add(&c, "evp-show", "--check", PROFILE, "--model", n->model, NULL);
    for (const struct json *o = json_first(json_get(n->options, "model")); o; o = json_next(o))
        command_add(&c, json_text(o), NULL);
    int status = command_run(&c, err);
    command_release(&c);
    if (status != err_exit_status(ERR_FORMAT))
        return status < 0 ? status : 0; // what else is wrong with the model, the first tool says that needs it
    if (file_exists(MANIFEST) && retire(n, err))
        return err->code;
    return err_set(
        err, ERR_FORMAT,
        "the model's weights or its chat template were changed, and nothing is served any more that was made "
        "with the old ones; evp-nightly --again begins anew");
}

bool night_has_plan(void)
{
    return file_exists(MANIFEST);
}

/* The plan before stays beside it where the file system has hard links; only the report misses it elsewhere. */
int night_put_in_force(struct err *err)
{
    if (!file_exists(TONIGHT))
        return 0;
    if (file_exists(MANIFEST)) {
        unlink(PREVIOUS);
        if (link(MANIFEST, PREVIOUS))
            log_debug("'%s' is not kept as '%s': %s", MANIFEST, PREVIOUS, strerror(errno));
    }
    if (chmod(TONIGHT, 0644)) // for the serving process
        log_warn("others may not read '%s': %s", MANIFEST, strerror(errno));
    return file_rename(TONIGHT, MANIFEST, err);
}

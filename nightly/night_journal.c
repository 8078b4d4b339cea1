/* night_journal.c - journals are read as hostile files: one that is damaged counts as ended. */
#include "nightly/night_journal.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { JOURNAL_VERSION = 1, JOURNAL_MAX = 16 << 20, NUMBER_DIGITS = 6, NIGHTS_BACK = 1000, LOCK_WAIT_S = 60 };
#define RUNNING "evp_night_running"

/* ---- the lock ------------------------------------------------------------------ */

/* The process that wrote its number into the lock, if it lives; else 0. */
static pid_t holder(int fd)
{
    char text[16] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    long pid = n > 0 ? strtol(text, NULL, 10) : 0;

    return pid > 0 && pid < INT_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM) ? (pid_t)pid : 0;
}

/* Tools inherit the lock. So the tool of a night that was killed, which ends soon, is waited for. */
static int lock(struct night *n, struct err *err)
{
    n->lock = open("lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (n->lock < 0 || fchmod(n->lock, 0600)) // whoever may open it could hold it
        return err_set(err, ERR_IO, "cannot open 'lock' in the state folder: %s", strerror(errno));
    for (int tries = 0; flock(n->lock, LOCK_EX | LOCK_NB); tries++) {
        if (errno != EWOULDBLOCK)
            return err_set(err, ERR_IO, "cannot lock 'lock' in the state folder: %s", strerror(errno));
        pid_t pid = holder(n->lock);
        if (pid)
            return err_set(err, ERR_FAIL, "another night is at work in this state folder: process %d", (int)pid);
        if (tries == LOCK_WAIT_S * 10)
            return err_set(err, ERR_FAIL, "a tool of a night that was killed is still at work in this state folder");
        nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    }
    if (ftruncate(n->lock, 0) || dprintf(n->lock, "%d\n", (int)getpid()) < 0)
        return err_set(err, ERR_IO, "cannot write to 'lock' in the state folder: %s", strerror(errno));
    return 0;
}

/* ---- the nights ---------------------------------------------------------------- */

static char *folder_of(int64_t number)
{
    struct buf path = { 0 };

    buf_printf(&path, "nights/%0*lld", NUMBER_DIGITS, (long long)number);
    char *taken = buf_failed(&path) ? NULL : buf_take(&path);
    buf_release(&path);
    return taken;
}

/* The number in the name of a night's folder; 0: it is none. */
static int64_t number_of(const char *name)
{
    size_t n = strlen(name);

    return n >= NUMBER_DIGITS && n < 16 && strspn(name, "0123456789") == n ? strtoll(name, NULL, 10) : 0;
}

static int64_t last_number(void)
{
    DIR *dir = opendir("nights");
    int64_t last = 0;

    for (const struct dirent *d; dir && (d = readdir(dir)) != NULL;) {
        int64_t number = number_of(d->d_name);
        last = number > last ? number : last;
    }
    if (dir)
        closedir(dir);
    return last;
}

/* Removes a night's folder and the files in it. */
static void remove_night(int64_t number)
{
    char *folder = folder_of(number);
    DIR *dir = folder ? opendir(folder) : NULL;

    for (const struct dirent *d; dir && (d = readdir(dir)) != NULL;)
        if (unlinkat(dirfd(dir), d->d_name, 0))
            log_debug("'%s/%s' stays: %s", folder, d->d_name, strerror(errno));
    if (dir)
        closedir(dir);
    if (folder && rmdir(folder))
        log_warn("cannot remove '%s': %s", folder, strerror(errno));
    free(folder);
}

static void prune(int64_t last, int64_t keep)
{
    DIR *dir = opendir("nights");

    for (const struct dirent *d; dir && (d = readdir(dir)) != NULL;) {
        int64_t number = number_of(d->d_name);
        if (number > 0 && number <= last - keep)
            remove_night(number);
    }
    if (dir)
        closedir(dir);
}

/* ---- journals ------------------------------------------------------------------ */

static struct json *copy_of(const struct json *row, struct err *err)
{
    struct buf text = { 0 };

    json_print(&text, row);
    struct json *copy = buf_failed(&text) ? NULL : json_parse(buf_str(&text), text.n, err);
    if (buf_failed(&text))
        err_nomem(err);
    buf_release(&text);
    return copy;
}

static int take_step(struct night *n, const struct json *row, bool resumed, struct err *err)
{
    if (!json_is_text(json_get(row, "step")) || !json_is_number(json_get(row, "status")) || json_get(row, "failed"))
        return 0; /* a step that failed is not done */
    struct json *copy = copy_of(row, err);
    if (!copy)
        return err->code;
    if (resumed ? ARRAY_PUSH(&n->steps, copy) : ARRAY_PUSH(&n->before, copy)) {
        json_free(copy);
        return err_nomem(err);
    }
    return 0;
}

/* Takes over what the last journal that can be read says. The very last night may go on. */
static int take_journal(struct night *n, const struct json *journal, bool last, struct err *err)
{
    double started = json_real(json_get(journal, "started"));
    double success = json_real(json_get(journal, "last_success"));
    const struct json *steps = json_get(journal, "steps");
    int code = 0;

    n->last_success = success > 0 ? success : 0;
    n->resumed = last && !json_get(journal, "ended") && fabs(n->started - started) <= NIGHT_HOURS * 3600.0;
    if (n->resumed)
        n->started = started;
    for (const struct json *s = json_is_array(steps) ? json_first(steps) : NULL; s && !code; s = json_next(s))
        code = take_step(n, s, n->resumed, err);
    return code;
}

/* The journal of a night; *out NULL: there is none, or it is damaged. */
static int read_journal(int64_t number, struct json **out, struct err *err)
{
    char *folder = folder_of(number), *path = folder ? file_join(folder, "night.json") : NULL;
    struct buf text = { 0 };
    struct err damaged;
    int code = path ? 0 : err_nomem(err);

    *out = NULL;
    if (!code && file_exists(path)) {
        if (file_read(&text, path, JOURNAL_MAX, &damaged) == 0)
            *out = json_parse(buf_str(&text), text.n, &damaged);
        if (!*out)
            log_warn("'%s' is damaged: %s", path, damaged.msg);
    }
    buf_release(&text);
    free(path);
    free(folder);
    return code;
}

static int read_last(struct night *n, int64_t last, struct err *err)
{
    struct json *journal = NULL;
    int64_t number = last;
    int code = 0;

    for (; !code && !journal && number > 0 && number > last - NIGHTS_BACK; number--)
        code = read_journal(number, &journal, err);
    if (journal)
        code = take_journal(n, journal, number + 1 == last, err);
    json_free(journal);
    return code;
}

int night_open(struct night *n, bool look, struct err *err)
{
    *n = (struct night){ .lock = -1, .started = clock_utc() };
    if (!look && (lock(n, err) || file_mkdir("nights", err)))
        return err->code;
    int64_t last = last_number();
    if (read_last(n, last, err))
        return err->code;
    n->number = n->resumed ? last : last + 1;
    n->folder = folder_of(n->number);
    if (!n->folder)
        return err_nomem(err);
    return look ? 0 : file_mkdir(n->folder, err);
}

void night_close(struct night *n)
{
    for (int i = 0; i < n->steps.n; i++)
        json_free(n->steps.at[i]);
    for (int i = 0; i < n->before.n; i++)
        json_free(n->before.at[i]);
    free(n->steps.at);
    free(n->before.at);
    free(n->folder);
    if (n->lock >= 0)
        close(n->lock);
}

static const struct json *find(struct json *const *at, int n, const char *step)
{
    for (int i = 0; i < n; i++) {
        const char *name = json_text(json_get(at[i], "step"));
        if (name && strcmp(name, step) == 0 && !json_get(at[i], "failed"))
            return at[i];
    }
    return NULL;
}

const struct json *night_find(const struct night *n, const char *step)
{
    return find(n->steps.at, n->steps.n, step);
}

const struct json *night_find_before(const struct night *n, const char *step)
{
    return find(n->before.at, n->before.n, step);
}

bool night_planned(const struct night *n)
{
    return night_find(n, NIGHT_PLANS) != NULL;
}

bool night_is_partial(const struct night *n)
{
    if (n->healed)
        return true;
    for (int i = 0; i < n->steps.n; i++)
        if (json_real(json_get(n->steps.at[i], "status")) > 0)
            return true;
    return false;
}

/* status below 0: the night goes on. */
static int write_journal(const struct night *n, int status, struct err *err)
{
    struct buf text = { 0 };
    struct json_out w = { .buf = &text };
    char *path = file_join(n->folder, "night.json");

    json_begin(&w, NULL, '{');
    json_put_text(&w, "evp", "night");
    json_put_int(&w, "version", JOURNAL_VERSION);
    json_put_int(&w, "night", n->number);
    json_put_real(&w, "started", n->started);
    if (status >= 0) {
        json_put_real(&w, "ended", clock_utc());
        json_put_int(&w, "status", status);
    }
    json_put_real(&w, "last_success", n->last_success);
    json_begin(&w, "steps", '[');
    for (int i = 0; i < n->steps.n; i++)
        json_put_node(&w, NULL, n->steps.at[i]);
    json_end(&w, ']');
    json_end(&w, '}');
    buf_addc(&text, '\n');
    int code = !path || buf_failed(&text) ? err_nomem(err) : file_write(path, text.at, text.n, err);
    buf_release(&text);
    free(path);
    return code;
}

int night_note(struct night *n, const struct night_step *step, struct err *err)
{
    struct buf text = { 0 };
    struct json_out w = { .buf = &text };

    if (!step->failed && strcmp(step->name, NIGHT_PLANS) == 0)
        n->last_success = clock_utc();
    json_begin(&w, NULL, '{');
    json_put_text(&w, "step", step->name);
    json_put_text(&w, "command", step->command);
    json_put_int(&w, "status", step->status);
    if (step->failed)
        json_put_bool(&w, "failed", true);
    json_put_real(&w, "seconds", step->seconds);
    if (json_get(step->summary, "error"))
        json_put_node(&w, "error", json_get(step->summary, "error"));
    json_put_node(&w, "result", json_get(step->summary, "result"));
    json_end(&w, '}');
    struct json *row = buf_failed(&text) ? NULL : json_parse(buf_str(&text), text.n, err);
    int code = row ? 0 : buf_failed(&text) ? err_nomem(err) : err->code;
    if (!code && ARRAY_PUSH(&n->steps, row)) {
        json_free(row);
        code = err_nomem(err);
    }
    buf_release(&text);
    return code ? code : write_journal(n, -1, err);
}

int night_end(struct night *n, int status, int64_t keep, struct err *err)
{
    if (write_journal(n, status, err))
        return err->code;
    prune(n->number, keep > 1 ? keep : 1);
    return 0;
}

/* ---- metrics ------------------------------------------------------------------- */

static void put_family(struct buf *text, const char *name, const char *help)
{
    buf_printf(text, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void put_one(struct buf *text, const char *name, const char *help, double v)
{
    put_family(text, name, help);
    buf_printf(text, "%s %.17g\n", name, v);
}

static void put_steps(struct buf *text, const struct night *n, const char *name, const char *help, const char *member)
{
    put_family(text, name, help);
    for (int i = 0; i < n->steps.n; i++)
        buf_printf(text, "%s{step=\"%s\"} %.17g\n", name, json_text(json_get(n->steps.at[i], "step")),
                   json_real(json_get(n->steps.at[i], member)));
}

/* The numbers of a summary; of several plans those of the first. */
static void put_figures(struct buf *text, const char *step, const struct json *result)
{
    for (const struct json *m = json_first(result); m; m = json_next(m)) {
        if (json_is_number(m))
            buf_printf(text, "evp_night_figure{step=\"%s\",figure=\"%s\"} %.17g\n", step, json_name(m), json_real(m));
        else if (json_is_array(m) && json_is_object(json_first(m)) && strcmp(json_name(m), "plans") == 0)
            put_figures(text, step, json_first(m));
    }
}

/* The last family of the file, so that night_metrics_begin() finds where it begins. */
static int write_metrics(struct buf *text, bool running, const char *path, struct err *err)
{
    put_one(text, RUNNING, "1: a night is at work, and the other figures are those of the night before.", running);
    int code = buf_failed(text) ? err_nomem(err) : file_write(path, text->at, text->n, err);
    if (!code && chmod(path, 0644)) // for the collector
        code = err_set(err, ERR_IO, "others may not read '%s': %s", path, strerror(errno));
    buf_release(text);
    return code;
}

int night_metrics_begin(const char *path, struct err *err)
{
    struct buf text = { 0 };
    struct err none;

    if (!file_exists(path) || file_read(&text, path, JOURNAL_MAX, &none))
        text.n = 0;
    const char *running = strstr(buf_str(&text), "# HELP " RUNNING);
    text.n = running ? (size_t)(running - text.at) : text.n;
    return write_metrics(&text, true, path, err);
}

int night_metrics(const struct night *n, int status, const char *path, struct err *err)
{
    struct buf text = { 0 };

    put_one(&text, "evp_night_status", "Its exit status: 0 success, 1 something was left out, else it failed.", status);
    put_one(&text, "evp_night_planned", "1: its plan is in force.", night_planned(n));
    put_one(&text, "evp_night_ended_timestamp_seconds", "When it ended.", clock_utc());
    if (n->number == 0)
        return write_metrics(&text, false, path, err);
    put_one(&text, "evp_night_number", "The last night.", (double)n->number);
    put_one(&text, "evp_night_started_timestamp_seconds", "When it began.", n->started);
    put_one(&text, "evp_night_success_timestamp_seconds", "When a night last ended with a new plan; 0: never.",
            n->last_success);
    put_steps(&text, n, "evp_night_step_status", "Exit status of a step.", "status");
    put_steps(&text, n, "evp_night_step_seconds", "Time of a step.", "seconds");
    put_family(&text, "evp_night_figure", "Numbers of a step's summary (docs/formats/summary.md).");
    for (int i = 0; i < n->steps.n; i++)
        put_figures(&text, json_text(json_get(n->steps.at[i], "step")), json_get(n->steps.at[i], "result"));
    return write_metrics(&text, false, path, err);
}

/* run_tool.c - words of a command line, and the process that runs them. */
#include "nightly/run_tool.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void add_word(struct command *c, const char *word)
{
    char *copy = strdup(word);

    if (!copy || ARRAY_PUSH(c, copy)) {
        free(copy);
        c->failed = true;
    }
}

void command_add(struct command *c, const char *word, ...)
{
    va_list words;

    va_start(words, word);
    for (; word; word = va_arg(words, const char *))
        add_word(c, word);
    va_end(words);
}

void command_option(struct command *c, const char *option, const char *value)
{
    if (value)
        command_add(c, option, value, NULL);
}

void command_split(struct command *c, const char *text)
{
    char *copy = strdup(text ? text : "");

    c->failed |= !copy;
    for (char *rest = NULL, *word = copy ? strtok_r(copy, " ", &rest) : NULL; word; word = strtok_r(NULL, " ", &rest))
        add_word(c, word);
    free(copy);
}

char *command_text(const struct command *c)
{
    struct buf text = { 0 };

    for (int i = 0; i < c->n; i++) {
        buf_adds(&text, i ? " " : "");
        buf_add_word(&text, c->at[i]);
    }
    char *taken = buf_failed(&text) ? NULL : buf_take(&text);
    buf_release(&text);
    return taken;
}

/* The path of a tool in this tool's folder; NULL without memory. The caller frees it. */
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

static void run_child(const char *tool, const struct command *c)
{
    int nothing = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (nothing >= 0)
        dup2(nothing, 0);
    if (nothing >= 0 && c->quiet)
        dup2(nothing, 1);
    alarm(c->limit_s); // outlives execv()
    execv(tool, c->at);
    _exit(127);
}

int command_run(struct command *c, struct err *err)
{
    char *text = command_text(c), *tool = c->n ? find_tool(c->at[0]) : NULL;
    int status = 0;

    if (!text || !tool || ARRAY_PUSH(c, NULL))
        c->failed = true;
    else
        c->n--; /* the NULL is there, but not a word */
    if (!c->failed && !c->quiet)
        log_info("$ %s", text);
    free(text);
    pid_t child = c->failed ? -1 : fork();
    if (child == 0)
        run_child(tool, c);
    free(tool);
    if (c->failed)
        return err_nomem(err);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            child = -1;
    if (child < 0)
        return err_set(err, ERR_FAIL, "cannot run %s: %s", c->at[0], strerror(errno));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM && c->limit_s > 0)
        return err_set(err, ERR_FAIL, "%s was ended: its time was over; the next run goes on where it was", c->at[0]);
    if (!WIFEXITED(status))
        return err_set(err, ERR_FAIL, "%s was killed; run the same command again to go on", c->at[0]);
    return WEXITSTATUS(status);
}

int command_finish(struct command *c, const char *profile, bool *partial, struct err *err)
{
    int status = command_run(c, err);

    if (status == 1 && strcmp(c->at[0], "evp-profile") == 0 && file_exists(profile)) {
        *partial = true;
        status = 0;
    }
    if (status > 0)
        err_set(err, ERR_FAIL, "%s ended with status %d", c->at[0], status);
    command_release(c);
    return status ? err->code : 0;
}

void command_release(struct command *c)
{
    for (int i = 0; i < c->n; i++)
        free(c->at[i]);
    free(c->at);
    *c = (struct command){ 0 };
}

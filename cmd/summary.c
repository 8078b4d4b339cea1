/* summary.c - collects the members while a tool works; writes the object around them at the end. */
#include "cmd/summary.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

enum { SUMMARY_VERSION = 1 };

static struct {
    const struct tool *tool;
    char **args;
    int n_args;
    double start;
    struct buf result;
    struct json_out out;
} state;

void summary_begin(const struct tool *tool, int argc, char **argv)
{
    state.tool = tool;
    state.args = argv + 1;
    state.n_args = argc - 1;
    state.start = clock_now();
    state.out = (struct json_out){ .buf = &state.result };
    json_begin(&state.out, NULL, '{');
}

struct json_out *summary_json(void)
{
    return &state.out;
}

void summary_int(const char *name, int64_t v)
{
    json_put_int(&state.out, name, v);
}

static void put_all(struct buf *text, int status, const struct err *err)
{
    struct json_out w = { .buf = text };

    json_begin(&w, NULL, '{');
    json_put_text(&w, "evp", "summary");
    json_put_int(&w, "version", SUMMARY_VERSION);
    json_put_text(&w, "tool", state.tool->name);
    json_begin(&w, "args", '[');
    for (int i = 0; i < state.n_args; i++)
        json_put_text(&w, NULL, state.args[i]);
    json_end(&w, ']');
    json_put_int(&w, "status", status);
    json_put_real(&w, "seconds", clock_now() - state.start);
    if (err)
        json_put_text(&w, "error", err->msg);
    json_put_raw(&w, "result", buf_str(&state.result));
    json_end(&w, '}');
    buf_addc(text, '\n');
}

static int write_all(const char *path, int status, const struct err *failure, struct err *err)
{
    struct buf text = { 0 };

    put_all(&text, status, failure);
    int code = buf_failed(&text) || buf_failed(&state.result) ? err_nomem(err) : file_write(path, text.at, text.n, err);
    buf_release(&text);
    return code;
}

int summary_end(int code, int status, const struct err *err)
{
    const char *path = state.tool->common->summary;
    struct err why;

    if (code)
        status = log_failure(err);
    json_end(&state.out, '}');
    if (path && write_all(path, status, code ? err : NULL, &why)) {
        int wrong = log_failure(&why);
        status = status ? status : wrong;
    }
    buf_release(&state.result);
    return opt_finish(status);
}

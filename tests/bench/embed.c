/* embed.c - how fast answers are embedded: one line of JSON for tests/bench/compare.
 *
 *     embed DIR TEXTS            TEXTS: one text per line
 *     embed DIR TEXTS BACKEND    on another backend than "cpu", and op by op: for tests/bench/gpu
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "embed/embed.h"
#include "tests/bench/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 1 << 16, REPEATS = 3 };

static const char *phase(const char *op)
{
    (void)op;
    return "embedder";
}

static void print(struct backend *timed, int n, double seconds)
{
    const struct ops none = { 0 }, all = ops_now(timed);
    struct buf out = { 0 };
    struct json_out w = { .buf = &out };

    json_begin(&w, NULL, '{');
    json_put_int(&w, "texts", n);
    json_put_real(&w, "seconds", seconds);
    if (timed) {
        json_put_real(&w, "clock_s", ops_clock_s(timed));
        json_begin(&w, "ops", '[');
        ops_put(&w, &none, &all, phase);
        json_end(&w, ']');
    }
    json_end(&w, '}');
    puts(buf_str(&out));
    buf_release(&out);
}

/* The lines of a file, cut in place; returns how many. */
static int read_lines(const char **line, struct buf *text, const char *path, struct err *err)
{
    int n = 0;

    if (file_read(text, path, 16 << 20, err))
        return 0;
    for (char *at = text->at, *end; at && (end = strchr(at, '\n')) && n < TEXTS; at = end + 1) {
        *end = '\0';
        line[n++] = at;
    }
    return n > 0 ? n : (err_set(err, ERR_FORMAT, "'%s' has no line", path), 0);
}

static int run(char **argv, const char *name, struct err *err)
{
    struct buf text = { 0 };
    const char **line = calloc(TEXTS, sizeof(*line));
    int n = line ? read_lines(line, &text, argv[2], err) : 0;
    double best = 1e9;

    if (n == 0)
        return line ? err->code : err_nomem(err);
    struct backend *be = backend_open(&(struct backend_options){ .name = name ? name : "cpu" }, err);
    struct backend *timed = be && name ? timed_open(be, err) : NULL, *used = timed ? timed : be;
    struct embedder *e = used ? embedder_open(argv[1], used, err) : NULL;
    if (!e)
        return err->code;
    float *vector = calloc((size_t)n * (size_t)embedder_width(e), sizeof(*vector));
    for (int r = 0; r < REPEATS; r++) {
        double start = clock_now();
        if (embedder_run(e, &(struct embed_texts){ line, n }, vector, NULL, err))
            return err->code;
        double seconds = clock_now() - start;
        best = seconds < best ? seconds : best;
    }
    print(timed, n, best);
    free(vector);
    embedder_close(e);
    used->close(used);
    buf_release(&text);
    free(line);
    return 0;
}

int main(int argc, char **argv)
{
    struct err err;

    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: embed DIR TEXTS [BACKEND]\n");
        return 2;
    }
    if (run(argv, argv[3], &err)) {
        fprintf(stderr, "embed: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    return 0;
}

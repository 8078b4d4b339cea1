/* embed.c - how fast answers are embedded: one line of JSON for tests/bench/compare.
 *
 *     embed DIR TEXTS    TEXTS: one text per line
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "embed/embed.h"
#include "kernels/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 1 << 16, REPEATS = 3 };

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

static int run(char **argv, struct err *err)
{
    struct buf text = { 0 };
    const char **line = calloc(TEXTS, sizeof(*line));
    int n = line ? read_lines(line, &text, argv[2], err) : 0;
    double best = 1e9;

    if (n == 0)
        return line ? err->code : err_nomem(err);
    struct backend *be = backend_open(&(struct backend_options){ .name = "cpu" }, err);
    struct embedder *e = be ? embedder_open(argv[1], be, err) : NULL;
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
    printf("{\"texts\":%d,\"seconds\":%.9g}\n", n, best);
    free(vector);
    embedder_close(e);
    be->close(be);
    buf_release(&text);
    free(line);
    return 0;
}

int main(int argc, char **argv)
{
    struct err err;

    if (argc != 3) {
        fprintf(stderr, "usage: embed DIR TEXTS\n");
        return 2;
    }
    if (run(argv, &err)) {
        fprintf(stderr, "embed: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    return 0;
}

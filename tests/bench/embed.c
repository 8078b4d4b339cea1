/* embed.c - how fast answers are embedded: one line of JSON for tests/bench/compare.
 *
 *     embed DIR TEXTS          TEXTS: one text per line
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

static int run(char **argv, struct err *err)
{
    struct buf text = { 0 };
    const char **line = calloc(TEXTS, sizeof(*line));
    int n = 0;
    double best = 1e9;

    if (!line || file_read(&text, argv[2], 16 << 20, err))
        return line ? err->code : err_nomem(err);
    for (char *at = text.at, *end; (end = strchr(at, '\n')) && n < TEXTS; at = end + 1) {
        *end = '\0';
        line[n++] = at;
    }
    struct backend *backend = backend_open(&(struct backend_options){ .name = "cpu" }, err);
    struct embedder *e = backend ? embedder_open(argv[1], backend, err) : NULL;
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
    printf("{\"texts\":%d,\"seconds\":%.4f}\n", n, best);
    free(vector);
    embedder_close(e);
    backend->close(backend);
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

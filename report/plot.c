/* plot.c - one gnuplot process per plot: the script goes in through an unnamed file, the SVG comes out through a pipe.
 * Scripts never contain file names or shell commands.
 */
#include "report/report_internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SVG_MAX = 16 << 20, READ_BLOCK = 1 << 16 };

static const char prologue[] =
    "set terminal svg size 640,400 font 'sans-serif,12' background 'white'\n"
    "set encoding utf8\nset grid\nset border 3\nset tics nomirror\nset key outside right top noenhanced\n";

void plot_label(struct buf *script, const char *text)
{
    buf_addc(script, '\'');
    for (; *text; text++)
        buf_addc(script, isalnum((unsigned char)*text) || strchr(" _.:=+-/%(),", *text) ? *text : '?');
    buf_addc(script, '\'');
}

/* Makes an unnamed file with the script, positioned at its beginning. */
static int script_file(const struct buf *script, struct err *err)
{
    int fd = memfd_create("plot", MFD_CLOEXEC);
    size_t n = sizeof(prologue) - 1;

    if (fd >= 0 && write(fd, prologue, n) == (ssize_t)n && write(fd, script->at, script->n) == (ssize_t)script->n &&
        lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    err_set(err, ERR_IO, "cannot write a script for gnuplot: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return err->code;
}

/* Runs in the child: becomes gnuplot, or exits with 127 if it is absent. Without a locale gnuplot warns of every
 * character beyond ASCII. */
static _Noreturn void become_gnuplot(int in, int out)
{
    if (dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && setenv("LC_ALL", "C.UTF-8", 1) == 0)
        execlp("gnuplot", "gnuplot", "-d", "-", (char *)NULL);
    _exit(127);
}

static int read_all(int fd, struct buf *svg)
{
    for (;;) {
        char *to = buf_reserve(svg, READ_BLOCK);
        ssize_t n = to ? read(fd, to, READ_BLOCK) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || !to || svg->n > SVG_MAX)
            return -1;
        if (n == 0)
            return 0;
        svg->n += (size_t)n;
        to[n] = '\0';
    }
}

/* Adds only the <svg> element; the XML before it is not allowed in HTML. */
static int add_element(struct buf *out, const struct buf *svg, struct err *err)
{
    const char *begin = strstr(buf_str(svg), "<svg");
    const char *end = begin ? strstr(begin, "</svg>") : NULL;

    if (!end)
        return err_set(err, ERR_IO, "gnuplot wrote no plot");
    buf_add(out, begin, (size_t)(end - begin) + strlen("</svg>"));
    buf_addc(out, '\n');
    return 0;
}

int plot_svg(struct buf *out, const struct buf *script, struct err *err)
{
    struct buf svg = { 0 };
    int ends[2] = { -1, -1 }, status = 0;

    if (buf_failed(script))
        return err_nomem(err);
    int in = script_file(script, err);
    if (in < 0)
        return err->code;
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child == 0)
        become_gnuplot(in, ends[1]);
    int failed = child < 0 ? errno : 0;
    close(in);
    if (ends[1] >= 0)
        close(ends[1]);
    int got = child > 0 ? read_all(ends[0], &svg) : -1;
    if (ends[0] >= 0)
        close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    int code = 0;
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        code = PLOT_ABSENT;
    else if (child < 0 || got || !WIFEXITED(status) || WEXITSTATUS(status))
        code = err_set(err, ERR_IO, "gnuplot failed%s%s", failed ? ": " : "", failed ? strerror(failed) : "");
    else
        code = add_element(out, &svg, err);
    buf_release(&svg);
    return code;
}

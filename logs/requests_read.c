/* requests_read.c - opens logs once and reads them line by line, several times. */
#include "logs/archive.h"
#include "base/array.h"
#include "base/file.h"
#include "logs/request_values.h"
#include "logs/requests_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { COPY_BLOCK = 1 << 20 };

/* ---- opening -------------------------------------------------------------- */

static int write_all(int fd, const char *at, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno != EINTR)
            return -1;
        at += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
    return 0;
}

/* A file without a name, in $TMPDIR: a killed process leaves none. Only old file systems give it a name for a
 * moment. */
static int open_nameless(struct err *err)
{
    const char *dir = getenv("TMPDIR");
    char *path = file_join(dir && *dir ? dir : "/tmp", "evp-import.XXXXXX");
    int fd = path ? open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

    if (!path)
        return err_nomem(err);
    if (fd < 0) {
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
            err_set(err, ERR_IO, "cannot create '%s': %s", path, strerror(errno));
        else
            unlink(path);
    }
    free(path);
    return fd < 0 ? err->code : fd;
}

/* Copies a log that can be read only once, and replaces it by the copy. */
static int keep_copy(struct requests_log *log, struct err *err)
{
    int fd = open_nameless(err);
    char *block = malloc(COPY_BLOCK);
    ssize_t n = 0;

    if (fd < 0 || !block) {
        free(block);
        return fd < 0 ? err->code : err_nomem(err);
    }
    for (;;) {
        n = read(log->fd, block, COPY_BLOCK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || write_all(fd, block, (size_t)n))
            break;
    }
    free(block);
    if (n != 0) {
        err_set(err, ERR_IO, "cannot copy %s to a temporary file: %s", log->label, strerror(errno));
        close(fd);
        return err->code;
    }
    close(log->fd);
    log->fd = fd;
    return 0;
}

/* Notes that n bytes of a log cannot be read. */
static void note_unread(struct requests *rq, int64_t n, const struct err *why)
{
    if (rq->n_unread++ == 0)
        rq->why = *why;
    rq->n_bytes_unread += n > 0 ? n : 0;
    rq->unread(rq->arg, why->msg);
}

/* Opens a regular file, or what this process has open already: another pipe could make it wait for ever. */
static int open_log(const char *path, struct stat *st, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    bool is_open = standard || strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0;
    int wait = is_open ? 0 : O_NONBLOCK;
    int fd = standard ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | wait);

    if (fd < 0 || fstat(fd, st) < 0)
        err_set(err, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    else if (S_ISDIR(st->st_mode) || (!is_open && !S_ISREG(st->st_mode)))
        err_set(err, ERR_IO, "cannot read '%s': %s", path,
                S_ISDIR(st->st_mode) ? strerror(EISDIR) : "it is not a regular file");
    else
        return fd;
    if (fd >= 0)
        close(fd);
    return err->code;
}

int requests_open(struct requests *rq, const char *path, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    struct buf label = { 0 };
    struct stat st = { 0 };
    struct requests_log log = { .fd = open_log(path, &st, err) };

    if (log.fd < 0 && !rq->lenient)
        return err->code;
    bool known = log.fd >= 0 || stat(path, &st) == 0;
    int64_t n = known && S_ISREG(st.st_mode) ? st.st_size : 0;
    rq->n_bytes += n;
    if (log.fd < 0) {
        note_unread(rq, n, err);
        return 0;
    }
    buf_printf(&label, standard ? "standard input" : "'%s'", path);
    log.label = buf_take(&label);
    rq->now = (double)time(NULL);
    log.newest = (S_ISREG(st.st_mode) ? (double)st.st_mtime : rq->now) + DAY;
    if (!log.label || ARRAY_PUSH(&rq->logs, log)) {
        free(log.label);
        close(log.fd);
        return err_nomem(err);
    }
    return S_ISREG(st.st_mode) ? 0 : keep_copy(&rq->logs.at[rq->logs.n - 1], err);
}

/* ---- reading -------------------------------------------------------------- */

struct reading {
    struct requests *rq;
    enum requests_reading reading;
    request_visit *each;
    void *arg;
    struct requests_log *log;
    const struct archive_stream *in;
    bool stopped;              // by a failure of `each`
    struct request_line *line; // counts: the results' in the first pass, later ignored
    struct request_values values;
    int64_t n_line;
};

/* Does a request go to a wanted model? Notes all models, and the time, in the first pass. */
static int take_request(void *arg, const struct request *q, struct err *err)
{
    const struct reading *r = arg;
    struct requests *rq = r->rq;
    const char *model = buf_str(&q->model);
    struct request_log *log = &r->line->log;

    if (r->reading == REQUESTS_FIRST && map_add(&rq->models, model, strlen(model), NULL) == MAP_NOMEM)
        return err_nomem(err);
    if (rq->wanted && rq->wanted->n && map_find(rq->wanted, model, strlen(model)) < 0)
        return 0;
    rq->n_used += r->reading == REQUESTS_FIRST;
    log->n_requests++;
    log->n_timeless += isnan(q->time);
    return r->each(r->arg, q, err);
}

static int read_value(void *arg, const char *line, size_t n, struct err *err)
{
    struct reading *r = arg;
    struct requests *rq = r->rq;
    const struct request_visitor visitor = { take_request, r };
    bool unended = archive_stream_unended(r->in);
    int64_t n_flawed = r->line->n_flawed, flaws[N_REQUEST_FLAWS];

    memcpy(flaws, r->line->flaws, sizeof(flaws));
    int code = request_read(r->line, line, n, &visitor, err);
    if (unended) { /* the server was killed, or writes it now */
        memcpy(r->line->flaws, flaws, sizeof(flaws));
        r->line->n_flawed = n_flawed;
    }
    r->stopped = code && code != REQUEST_DAMAGED;
    if (code != REQUEST_DAMAGED)
        return code;
    if (r->reading == REQUESTS_FIRST && !unended) {
        err_wrap(err, "%s line %lld", r->log->label, (long long)r->n_line);
        rq->n_damaged++;
        rq->damaged(rq->arg, err->msg);
    }
    return 0;
}

static int read_line(void *arg, const char *line, size_t n, struct err *err)
{
    struct reading *r = arg;

    r->n_line++;
    r->rq->n_lines += r->reading == REQUESTS_FIRST;
    return request_values_line(&r->values, line, n, err);
}

static void note_bytes(void *arg, int64_t bytes)
{
    const struct reading *r = arg;

    r->rq->reading(r->rq->arg, bytes);
}

/* May the others go on without the rest of a log? What is read of it is the same in each reading. */
static bool may_be_cut(struct reading *r, const struct err *why)
{
    struct requests_log *log = r->log;
    struct stat st;

    if (r->stopped || why->code == ERR_NOMEM || !(log->cut || (r->rq->lenient && r->reading == REQUESTS_FIRST)))
        return false;
    if (!log->cut)
        note_unread(r->rq, fstat(log->fd, &st) ? 0 : st.st_size - archive_stream_bytes(r->in), why);
    log->cut = true;
    return true;
}

static int read_log(struct reading *r, struct err *err)
{
    struct archive_stream *in = archive_stream_open(r->log->label, r->log->fd, err);

    r->in = in;
    r->values = (struct request_values){ .each = read_value, .arg = r };
    r->line->log = (struct request_log){ .newest = r->log->newest, .future = r->rq->now + DAY };
    int code = in ? archive_stream_lines(in, &(struct archive_lines){ read_line, note_bytes, r }, err) : err->code;
    code = code ? code : request_values_end(&r->values, err);
    request_end(r->line);
    request_values_release(&r->values);
    if (code && may_be_cut(r, err))
        code = 0;
    archive_stream_close(in);
    if (!code && r->reading == REQUESTS_FIRST)
        r->rq->read(r->rq->arg, r->log->label, &r->line->log);
    return code;
}

int requests_each(struct requests *rq, enum requests_reading reading, request_visit *each, void *arg, struct err *err)
{
    const struct trace_reading *t = &rq->line.trace;
    struct request_line again = { .date = rq->line.date,
                                  .hashes = rq->line.hashes,
                                  .bytes_suffice = rq->line.bytes_suffice,
                                  .trace = { .facts = t->facts,
                                             .unit = t->unit,
                                             .found_unit = t->found_unit,
                                             .block = t->block,
                                             .reuse = t->reuse } };
    int code = 0;

    rq->line.wanted = rq->wanted;
    for (int i = 0; i < rq->logs.n && !code; i++) {
        struct reading r = { .rq = rq,
                             .reading = reading,
                             .each = each,
                             .arg = arg,
                             .log = &rq->logs.at[i],
                             .line = reading == REQUESTS_FIRST ? &rq->line : &again };
        code = read_log(&r, err);
    }
    request_line_release(&again);
    return code;
}

int requests_look(struct requests *rq, request_visit *each, void *arg, struct err *err)
{
    return requests_each(rq, REQUESTS_AGAIN, each, arg, err);
}

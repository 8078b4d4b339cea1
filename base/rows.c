/* rows.c - reads line by line, so a stream needs memory for its longest line, which has a limit; writes through one
 * buffer per line. Only this file knows the header and the end line, and their errors.
 */
#include "base/rows.h"

#include "base/magic.h"
#include "base/unconst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------- */

static int wrap_line(const struct rows_in *in, struct err *err)
{
    return err_wrap(err, "%s line %lld", in->path, (long long)in->n_line);
}

static bool is_blank(const char *line, size_t n)
{
    while (n > 0 && strchr(" \t\r\n", line[n - 1]) && line[n - 1])
        n--;
    return n == 0;
}

enum { ROWS_LINE_MAX = 256 << 20 }; // bytes: a context of 50 million tokens

/* A line, with or without its line end, as JSON: 1 and *value (the caller frees it), 0 if it is blank, or an error that
 * does not name the line yet. */
static int parse_line(const char *line, size_t n, struct json **value, struct err *err)
{
    if (n > ROWS_LINE_MAX)
        return err_set(err, ERR_FORMAT, "longer than %d MiB", ROWS_LINE_MAX >> 20);
    if (is_blank(line, n))
        return 0;
    *value = json_parse(line, n, err);
    if (!*value)
        return err->code;
    if (json_is_object(*value))
        return 1;
    json_free(*value);
    return err_set(err, ERR_FORMAT, "not a JSON object");
}

enum { READ_MIN = 4096 }; // bytes of the first read of a line; each next read doubles the total

/* Space for more than n bytes of a line. */
static bool grow_line(struct rows_in *in, size_t n)
{
    enum { LAST = ROWS_LINE_MAX + 2 }; // with its line end, and a NUL
    size_t cap = in->cap ? 2 * in->cap : READ_MIN;

    if (in->cap > n + 1)
        return true;
    cap = cap < LAST ? cap : LAST;
    char *line = realloc(in->line, cap);
    if (!line)
        return false;
    in->line = line;
    in->cap = cap;
    return true;
}

/* Continues a line after its first n bytes, up to its end or a limit. Returns the number of bytes read. fgets() does
 * not tell it, and the line may contain NULs. So the space is filled with line ends before; afterwards a NUL follows
 * the first line end only if it was read. */
static size_t read_on(struct rows_in *in, size_t n)
{
    char *at = in->line + n;
    size_t space = in->cap - n, more = n > READ_MIN ? n : READ_MIN;

    space = space < more ? space : more;
    memset(at, '\n', space);
    if (!fgets(at, (int)space, in->f))
        return 0;
    const char *end = memchr(at, '\n', space);
    if (!end)
        return space - 1;
    size_t before = (size_t)(end - at);
    return before + 1 < space && end[1] == '\0' ? before + 1 : before - 1;
}

/* Like getline(), but with a limit for lines without end: 1 and *n, 0 at the end of the file, or an error. */
static int read_line(struct rows_in *in, size_t *n, struct err *err)
{
    size_t got = 1;

    for (*n = 0; got && (*n == 0 || in->line[*n - 1] != '\n') && *n <= ROWS_LINE_MAX; *n += got) {
        if (!grow_line(in, *n))
            return err_nomem(err);
        got = read_on(in, *n);
    }
    in->line[*n] = '\0';
    if (ferror(in->f))
        return err_set(err, ERR_IO, "cannot read %s: %s", in->path, strerror(errno));
    return *n > 0;
}

/* The next non-blank line as JSON: 1, 0 at the end of the file, or an error. */
static int next_line(struct rows_in *in, struct json **value, struct err *err)
{
    for (;;) {
        size_t n;
        int got = read_line(in, &n, err);
        if (got <= 0)
            return got;
        in->n_line++;
        if (in->digest)
            digest_add(in->digest, in->line, n);
        got = parse_line(in->line, n, value, err);
        if (got > 0)
            return got;
        if (got < 0 && in->line[0] == '{' && in->line[n - 1] != '\n')
            err_add(err, "; the line has no end: was the file cut?");
        if (got < 0)
            return wrap_line(in, err);
    }
}

static int check_header(struct rows_in *in, const char *kind, struct err *err)
{
    const char *is = json_text(json_get(in->header, "evp"));
    int newest = strcmp(kind, "manifest") == 0 ? ROWS_MANIFEST_VERSION : ROWS_VERSION;
    int64_t version;

    if (!is || strcmp(is, kind) != 0)
        return err_set(err, ERR_FORMAT, "%s holds %s, not %s", in->path, is ? magic_kind(is) : "something unknown",
                       magic_kind(kind));
    if (json_want_int(in->header, "version", &version, err))
        return wrap_line(in, err);
    if (version < 1 || version > newest)
        return err_set(err, ERR_FORMAT, "%s is of version %lld; this program reads version %s%d", in->path,
                       (long long)version, newest > 1 ? "1 to " : "", newest);
    in->version = (int)version;
    return 0;
}

/* Reads the header; a first line that is a row is kept for rows_next(). */
static int start(struct rows_in *in, const char *kind, struct err *err)
{
    struct json *value;

    int got = next_line(in, &value, err);
    if (got == 0 && (strcmp(kind, "rules") == 0 || strcmp(kind, "access") == 0))
        return 0; /* there may be none tonight */
    if (got == 0)
        got = err_set(err, ERR_FORMAT, "%s is empty", in->path);
    if (got < 0) {
        rows_close(in);
        return got;
    }
    if (!json_get(value, "evp")) {
        in->first = value;
        return 0;
    }
    in->header = value;
    if (check_header(in, kind, err)) {
        rows_close(in);
        return err->code;
    }
    return 0;
}

int rows_open_hashed(struct rows_in *in, const char *path, const char *kind, struct digest *digest, struct err *err)
{
    bool standard = !path || strcmp(path, "-") == 0;
    struct buf name = { 0 };

    *in = (struct rows_in){ .digest = digest };
    buf_printf(&name, standard ? "standard input" : "'%s'", path);
    in->path = buf_take(&name);
    in->f = standard ? stdin : fopen(path, "rb");
    if (!in->f || !in->path) {
        err_set(err, ERR_IO, "cannot open '%s': %s", standard ? "-" : path, strerror(errno));
        rows_close(in);
        return err->code;
    }
    int code = start(in, kind, err);
    return code && !standard ? magic_refuse(err, path, magic_kind(kind)) : code;
}

int rows_open(struct rows_in *in, const char *path, const char *kind, struct err *err)
{
    return rows_open_hashed(in, path, kind, NULL, err);
}

int rows_open_bytes(struct rows_in *in, const struct rows_bytes *bytes, const char *kind, struct err *err)
{
    *in = (struct rows_in){ .path = strdup(bytes->label) };
    in->f = fmemopen(unconst(bytes->at), bytes->n, "rb");
    if (!in->f || !in->path) {
        rows_close(in);
        return err_nomem(err);
    }
    const struct magic_source source = { bytes->label, bytes->at, bytes->n };
    return start(in, kind, err) ? magic_refuse_bytes(err, &source, magic_kind(kind)) : 0;
}

static bool is_end(const struct json *row)
{
    return json_true(json_get(row, "end"));
}

static int check_end(struct rows_in *in, const struct json *end, struct err *err)
{
    int64_t rows;
    struct json *more;

    if (json_want_int(end, "rows", &rows, err))
        return wrap_line(in, err);
    if (rows != in->n_rows)
        return err_set(err, ERR_FORMAT, "%s has %lld rows, but its end line says %lld", in->path, (long long)in->n_rows,
                       (long long)rows);
    in->ended = true;
    int got = next_line(in, &more, err);
    if (got <= 0)
        return got;
    json_free(more);
    err_set(err, ERR_FORMAT, "a row after the end line");
    return wrap_line(in, err);
}

static int check_ended(const struct rows_in *in, struct err *err)
{
    if (in->ended || !in->header)
        return 0;
    return err_set(err, ERR_FORMAT, "%s was cut: it has no end line after its %lld rows", in->path,
                   (long long)in->n_rows);
}

int rows_next(struct rows_in *in, struct json **row, struct err *err)
{
    int got;

    if (in->ended)
        return 0;
    if (in->first) {
        *row = in->first;
        in->first = NULL;
        in->n_rows++;
        return 1;
    }
    got = next_line(in, row, err);
    if (got < 0)
        return got;
    if (got == 0)
        return check_ended(in, err);
    if (is_end(*row)) {
        int code = check_end(in, *row, err);
        json_free(*row);
        *row = NULL;
        return code;
    }
    in->n_rows++;
    return 1;
}

int rows_rest(struct rows_in *in, rows_visit *each, void *arg, struct err *err)
{
    struct json *row;
    int got;

    while ((got = rows_next(in, &row, err)) == 1) {
        int code = each(arg, row, err);
        json_free(row);
        if (code)
            return wrap_line(in, err);
    }
    return got;
}

int rows_each(const char *path, const char *kind, rows_visit *each, void *arg, struct err *err)
{
    struct rows_in in;

    if (rows_open(&in, path, kind, err))
        return err->code;
    int code = rows_rest(&in, each, arg, err);
    rows_close(&in);
    return code;
}

void rows_close(struct rows_in *in)
{
    if (in->f && in->f != stdin)
        fclose(in->f);
    free(in->path);
    free(in->line);
    json_free(in->header);
    json_free(in->first);
    *in = (struct rows_in){ 0 };
}

/* ---- writing ----------------------------------------------------------- */

static int write_line(struct rows_out *out, struct err *err)
{
    const struct buf *line = &out->line;

    buf_addc(&out->line, '\n');
    if (buf_failed(line))
        return err_nomem(err);
    if (fwrite(buf_str(line), 1, line->n, out->f) != line->n)
        return err_set(err, ERR_IO, "cannot write %s: %s", out->file.path ? out->file.path : "standard output",
                       strerror(errno));
    return 0;
}

/* The tools from the file that is written down to an input. */
struct made_path {
    const char *tool; // NULL: not known
    const struct made_path *up;
};

static bool is_passed(const struct made_path *path, const char *tool)
{
    for (; path && tool; path = path->up)
        if (path->tool && strcmp(path->tool, tool) == 0)
            return true;
    return false;
}

/* Copies an input's lineage without what tools of its path had done before. */
static void put_made(struct json_out *w, const struct json *made, const struct made_path *up)
{
    const struct made_path here = { json_text(json_get(made, "tool")), up };

    json_begin(w, NULL, '{');
    for (const struct json *m = json_first(made); m; m = json_next(m)) {
        if (strcmp(json_name(m), "from") != 0) {
            json_put_node(w, json_name(m), m);
            continue;
        }
        json_begin(w, "from", '[');
        for (const struct json *f = json_is_array(m) ? json_first(m) : NULL; f; f = json_next(f))
            if (json_is_object(f) && !is_passed(&here, json_text(json_get(f, "tool"))))
                put_made(w, f, &here);
        json_end(w, ']');
    }
    json_end(w, '}');
}

void rows_made_to_json(const struct rows_made *made, struct json_out *w)
{
    const struct made_path here = { made->tool, NULL };

    json_put_text(w, "tool", made->tool);
    json_begin(w, "args", '[');
    for (int i = 0; i < made->n_args; i++)
        json_put_text(w, NULL, made->args[i]);
    json_end(w, ']');
    if (made->inputs)
        json_put_raw(w, "inputs", made->inputs);
    json_begin(w, "from", '[');
    for (int i = 0; i < made->n_from; i++)
        if (json_is_object(made->from[i]))
            put_made(w, made->from[i], &here);
    json_end(w, ']');
}

void rows_made_to_text(const struct rows_made *made, struct buf *out)
{
    struct json_out w = { .buf = out };

    json_begin(&w, NULL, '{');
    rows_made_to_json(made, &w);
    json_end(&w, '}');
}

static int write_header(struct rows_out *out, const struct rows_made *made, struct err *err)
{
    struct json_out w = rows_begin(out);

    json_put_text(&w, "evp", made->kind);
    json_put_int(&w, "version", made->version ? made->version : ROWS_VERSION);
    rows_made_to_json(made, &w);
    if (made->more)
        made->more(made->arg, &w);
    json_end(&w, '}');
    return write_line(out, err);
}

int rows_create(struct rows_out *out, const char *path, const struct rows_made *made, struct err *err)
{
    *out = (struct rows_out){ .f = stdout };
    if (path && strcmp(path, "-") != 0) {
        if (file_create(&out->file, path, err))
            return err->code;
        out->f = out->file.f;
    }
    if (write_header(out, made, err)) {
        rows_abort(out);
        return err->code;
    }
    return 0;
}

struct json_out rows_begin(struct rows_out *out)
{
    struct json_out w = { .buf = &out->line };

    buf_clear(&out->line);
    json_begin(&w, NULL, '{');
    return w;
}

int rows_put(struct rows_out *out, struct json_out *w, struct err *err)
{
    json_end(w, '}');
    out->n_rows++;
    return write_line(out, err);
}

int rows_finish(struct rows_out *out, struct err *err)
{
    int code;

    buf_clear(&out->line);
    buf_printf(&out->line, "{\"end\":true,\"rows\":%lld}", (long long)out->n_rows);
    code = write_line(out, err);
    if (!code && out->f == stdout && fflush(stdout))
        code = err_set(err, ERR_IO, "cannot write standard output: %s", strerror(errno));
    if (code || !out->file.f) {
        rows_abort(out);
        return code;
    }
    buf_release(&out->line);
    out->f = NULL;
    return file_commit(&out->file, err);
}

void rows_abort(struct rows_out *out)
{
    file_abort(&out->file);
    buf_release(&out->line);
    *out = (struct rows_out){ 0 };
}

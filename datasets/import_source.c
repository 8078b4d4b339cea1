/* import_source.c - the reading half of import.h: files, folders, archives and standard input, down to rows and texts.
 */
#include "datasets/import.h"

#include "base/file.h"
#include "base/rows.h"
#include "base/utf8.h"
#include "datasets/archive.h"
#include "datasets/dataset.h"
#include "datasets/row.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names ---------------------------------------------------------------- */

enum kind { KIND_UNKNOWN, KIND_ROWS, KIND_TEXT };

static const struct ending {
    const char *text;
    enum kind kind;
} endings[] = { { ".jsonl", KIND_ROWS }, { ".txt", KIND_TEXT }, { ".md", KIND_TEXT } };

static const struct ending *ending_of(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        size_t e = strlen(endings[i].text);
        if (n > e && strcasecmp(name + n - e, endings[i].text) == 0)
            return &endings[i];
    }
    return NULL;
}

static enum kind kind_of(const char *name)
{
    const struct ending *e = ending_of(name);

    return e ? e->kind : KIND_UNKNOWN;
}

/* The file's name without folder and known ending: "Apache-2.0" keeps its dot. The caller frees it. */
static char *stem_of(const char *path)
{
    const char *name = file_name(path);
    const struct ending *e = ending_of(name);

    return strndup(name, strlen(name) - (e ? strlen(e->text) : 0));
}

static bool hidden(const char *path)
{
    for (const char *part = path;; part++) {
        size_t n = strcspn(part, "/");
        if (n > 0 && part[0] == '.' && !(n == 1 || (n == 2 && part[1] == '.')))
            return true;
        part += n;
        if (!*part)
            return false;
    }
}

/* Is it worth reading? A LongBench file of another dataset than the wanted ones is not; it has been met, though. */
static bool worth(struct import *im, const char *name)
{
    if (im->wanted.n == 0 || kind_of(name) != KIND_ROWS)
        return true;
    char *stem = stem_of(name);
    if (!stem)
        return true;
    bool skip = dataset_find(stem) && map_find(&im->wanted, stem, strlen(stem)) < 0;
    if (skip)
        skip = map_add(&im->datasets, stem, strlen(stem), NULL) >= 0;
    free(stem);
    return !skip;
}

/* ---- rows ----------------------------------------------------------------- */

static int keep_header(struct import *im, struct rows_in *in, struct err *err)
{
    struct json **header = in->header ? reallocarray(im->header, (size_t)im->n_headers + 1, sizeof(*header)) : NULL;

    if (!in->header)
        return 0;
    if (!header)
        return err_nomem(err);
    im->header = header;
    im->header[im->n_headers++] = in->header;
    in->header = NULL;
    return 0;
}

static int add_row(struct import *im, const struct rows_in *in, const struct json *row, const char *stem,
                   struct err *err)
{
    struct row_origin origin = { .stem = stem, .line = in->n_line };
    struct buf label = { 0 };
    struct context c;

    int code = row_context(&c, row, &origin, err);
    if (code) {
        rows_wrap(in, err);
        return code == ERR_FORMAT ? import_leave_out(im, err) : code;
    }
    buf_printf(&label, "%s line %lld", in->path, (long long)in->n_line);
    code = import_add(im, &c, buf_str(&label), err);
    buf_release(&label);
    return code;
}

static int import_rows(struct import *im, const struct import_file *file, const char *stem, struct err *err)
{
    struct rows_bytes bytes = { .label = file->label, .at = file->bytes, .n = file->n };
    struct rows_in in;
    struct json *row;
    int got;

    if (rows_open_bytes(&in, &bytes, "contexts", err))
        return err->code;
    while ((got = rows_next(&in, &row, err)) == 1) {
        int code = add_row(im, &in, row, stem, err);
        json_free(row);
        if (code) {
            got = code;
            break;
        }
    }
    if (got == 0)
        got = keep_header(im, &in, err);
    rows_close(&in);
    return got;
}

/* ---- texts ---------------------------------------------------------------- */

/* The stem, or stem-2, stem-3 ... where another text has it already. */
static char *free_id(const struct import *im, const char *stem)
{
    struct buf id = { 0 };

    buf_adds(&id, stem);
    for (int i = 2; !buf_failed(&id) && map_find(&im->contexts.ids, buf_str(&id), id.n) >= 0; i++) {
        buf_clear(&id);
        buf_printf(&id, "%s-%d", stem, i);
    }
    return buf_take(&id);
}

static int import_text(struct import *im, const struct import_file *file, const char *stem, struct err *err)
{
    struct dataset_row row = { .document = file->bytes };
    struct context c = { 0 };

    int code = dataset_prompt(NULL, &row, &c, err);
    if (!code) {
        c.id = free_id(im, stem);
        c.dataset = strdup("");
        if (c.id && c.dataset)
            return import_add(im, &c, file->label, err);
        code = err_nomem(err);
    }
    context_release(&c);
    err_wrap(err, "%s", file->label);
    return code == ERR_FORMAT ? import_leave_out(im, err) : code;
}

/* ---- files in memory ------------------------------------------------------ */

static bool binary(const char *bytes, size_t n, const char *label, struct err *err)
{
    if (!memchr(bytes, '\0', n))
        return false;
    err_set(err, ERR_FORMAT, "%s is neither text nor a whole archive of a known kind", label);
    return true;
}

static int import_clean(struct import *im, const struct import_file *file, struct err *err)
{
    enum kind kind = kind_of(file->name);
    char *stem = stem_of(file->name);

    if (!stem)
        return err_nomem(err);
    if (kind == KIND_UNKNOWN)
        kind = file->bytes[strspn(file->bytes, " \t\r\n")] == '{' ? KIND_ROWS : KIND_TEXT;
    int code = kind == KIND_ROWS ? import_rows(im, file, stem, err) : import_text(im, file, stem, err);
    free(stem);
    return code;
}

/* With malformed UTF-8 replaced. */
static int import_cleaned(struct import *im, struct import_file file, struct err *err)
{
    struct buf text = { 0 };

    err_set(err, ERR_FORMAT, "%s is not UTF-8 throughout: what is malformed becomes U+FFFD", file.label);
    im->note(im->arg, IMPORT_WARNING, err->msg);
    utf8_clean(&text, file.bytes, file.n);
    file.bytes = buf_str(&text);
    file.n = text.n;
    int code = buf_failed(&text) ? err_nomem(err) : import_clean(im, &file, err);
    buf_release(&text);
    return code;
}

int import_bytes(struct import *im, const struct import_file *given, struct err *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* that some editors put in front of UTF-8 */
    struct import_file file = *given;

    if (binary(file.bytes, file.n, file.label, err))
        return import_leave_out(im, err);
    if (file.n >= 3 && memcmp(file.bytes, mark, 3) == 0) {
        file.bytes += 3;
        file.n -= 3;
    }
    return utf8_valid(file.bytes, file.n) ? import_clean(im, &file, err) : import_cleaned(im, file, err);
}

/* ---- archives ------------------------------------------------------------- */

struct inside {
    struct import *im;
    const char *label;
};

static bool wants_entry(void *arg, const char *name)
{
    const struct inside *in = arg;

    return !hidden(name) && worth(in->im, name);
}

static int add_entry(void *arg, const char *name, const char *bytes, size_t n, struct err *err)
{
    const struct inside *in = arg;
    struct buf label = { 0 };

    buf_printf(&label, "%s entry '%s'", in->label, name);
    struct import_file file = { .label = buf_str(&label), .name = name, .bytes = bytes, .n = n };
    int code = buf_failed(&label) ? err_nomem(err) : import_bytes(in->im, &file, err);
    buf_release(&label);
    return code;
}

static int import_archive(struct import *im, const struct archive_source *source, struct err *err)
{
    struct inside in = { .im = im, .label = source->label };
    struct archive_visitor visitor = { .wants = wants_entry, .file = add_entry, .arg = &in };

    return archive_visit(source, &visitor, err);
}

/* ---- files, folders, standard input --------------------------------------- */

/* A file in a folder may be anything; one that was named is meant to be read. */
enum found { FOUND_NAMED, FOUND_IN_FOLDER };

/* A file that is to be read into memory; an archive that comes through a pipe too. */
static int import_read(struct import *im, const char *path, const char *label, enum found found, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    struct import_file file = { .label = label, .name = standard ? "stdin" : path };
    struct buf bytes = { 0 };

    int code = file_read(&bytes, path, ARCHIVE_ENTRY_LIMIT, err);
    if (!code && kind_of(file.name) == KIND_UNKNOWN) {
        struct archive_source source = { .label = label, .bytes = buf_str(&bytes), .n = bytes.n };
        code = import_archive(im, &source, err);
    } else if (!code)
        code = ARCHIVE_NONE;
    if (code == ARCHIVE_NONE) {
        file.bytes = buf_str(&bytes);
        file.n = bytes.n;
        bool fatal = found == FOUND_NAMED && binary(file.bytes, file.n, label, err);
        code = fatal ? err->code : import_bytes(im, &file, err);
    }
    buf_release(&bytes);
    return code;
}

static int import_file(struct import *im, const char *path, enum found found, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    struct buf label = { 0 };
    struct stat st;
    int code = ARCHIVE_NONE;

    if (!worth(im, path))
        return 0;
    buf_printf(&label, standard ? "standard input" : "'%s'", path);
    if (buf_failed(&label))
        return err_nomem(err);
    if (!standard && kind_of(path) == KIND_UNKNOWN && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        struct archive_source source = { .label = label.at, .path = path };
        code = import_archive(im, &source, err);
    }
    if (code == ARCHIVE_NONE)
        code = import_read(im, path, label.at, found, err);
    buf_release(&label);
    return code;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int import_node(struct import *im, FTS *tree, FTSENT *node, struct err *err)
{
    bool top = node->fts_level == FTS_ROOTLEVEL;

    switch (node->fts_info) {
    case FTS_D:
        if (!top && node->fts_name[0] == '.')
            fts_set(tree, node, FTS_SKIP);
        return 0;
    case FTS_F: return node->fts_name[0] == '.' ? 0 : import_file(im, node->fts_path, FOUND_IN_FOLDER, err);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS: return err_set(err, ERR_IO, "cannot read '%s': %s", node->fts_path, strerror(node->fts_errno));
    default: return 0; /* links, pipes, devices; a folder on the way up */
    }
}

static int import_folder(struct import *im, const char *path, struct err *err)
{
    char *roots[] = { (char *)(uintptr_t)path, NULL };
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    FTSENT *node;
    int code = 0;

    if (!tree)
        return err_set(err, ERR_IO, "cannot read folder '%s': %s", path, strerror(errno));
    for (errno = 0; !code && (node = fts_read(tree)); errno = 0)
        code = import_node(im, tree, node, err);
    if (!code && errno)
        code = err_set(err, ERR_IO, "cannot read folder '%s': %s", path, strerror(errno));
    fts_close(tree);
    return code;
}

int import_path(struct import *im, const char *path, struct err *err)
{
    return file_is_dir(path) ? import_folder(im, path, err) : import_file(im, path, FOUND_NAMED, err);
}

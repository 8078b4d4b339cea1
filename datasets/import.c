/* import.c - finds the files: folders are walked, archives are read entry by entry, everything else is read whole and
 * goes to import_bytes(). A file whose name says that it holds rows or text is never taken for an archive.
 */
#include "datasets/import.h"

#include "logs/archive.h"
#include "base/file.h"
#include "base/unconst.h"
#include "datasets/dataset.h"
#include "datasets/import_internal.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- skipped files --------------------------------------------------------- */

/* Does a folder of the path or the file begin with a dot? */
static bool is_hidden(const char *path)
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

/* Is the file LongBench's file of a dataset that is not wanted? Then its dataset is noted as seen in the input. */
static bool is_unwanted(struct import *im, const char *name)
{
    if (im->wanted.n == 0 || !import_has_rows(name))
        return false;
    char *stem = import_stem(name);
    if (!stem)
        return false;
    bool unwanted = dataset_find(stem) && map_find(&im->wanted, stem, strlen(stem)) < 0 &&
                    map_add(&im->datasets, stem, strlen(stem), NULL) >= 0;
    free(stem);
    return unwanted;
}

/* ---- archives ------------------------------------------------------------- */

struct entry_import {
    struct import *im;
    const char *label; // of the archive
};

static bool wants_entry(void *arg, const char *name)
{
    const struct entry_import *e = arg;

    return !is_hidden(name) && !is_unwanted(e->im, name);
}

static int import_entry(void *arg, const char *name, const char *bytes, size_t n, struct err *err)
{
    const struct entry_import *e = arg;
    struct buf label = { 0 };

    buf_printf(&label, "%s entry '%s'", e->label, name);
    struct import_file file = { .label = buf_str(&label), .name = name, .bytes = bytes, .n = n };
    int code = buf_failed(&label) ? err_nomem(err) : import_bytes(e->im, &file, err);
    buf_release(&label);
    return code;
}

/* Returns ARCHIVE_NONE when the source is not an archive. */
static int import_archive(struct import *im, const struct archive_source *source, struct err *err)
{
    struct entry_import entry = { .im = im, .label = source->label };
    struct archive_visitor visitor = { .wants = wants_entry, .file = import_entry, .arg = &entry };

    return archive_visit(source, &visitor, err);
}

/* ---- files and standard input ---------------------------------------------- */

struct input {
    const char *path; // "-": standard input
    const char *name; // its ending gives the kind
    bool is_regular;  // false: a pipe or a device, which can be read only once
    /* If binary, a named file fails the import; a file in a folder is left out. */
    enum { INPUT_NAMED, INPUT_IN_FOLDER } found;
};

/* Unpacks one compressed file. ARCHIVE_NONE: it is not compressed. */
static int import_unpacked(struct import *im, const struct input *input, const char *label, struct err *err)
{
    struct buf bytes = { 0 };
    const char *dot = strrchr(file_name(input->name), '.');
    int code = archive_unpack(&bytes, input->path, err);

    if (code)
        return code;
    char *name = strndup(input->name, dot ? (size_t)(dot - input->name) : strlen(input->name)); // without .gz
    struct import_file file = { .label = label, .name = name, .bytes = buf_str(&bytes), .n = bytes.n };
    code = name ? import_bytes(im, &file, err) : err_nomem(err);
    free(name);
    buf_release(&bytes);
    return code;
}

/* Reads the whole file into memory and imports it. */
static int import_read(struct import *im, const struct input *input, const char *label, struct err *err)
{
    struct buf bytes = { 0 };
    int code = file_read(&bytes, input->path, ARCHIVE_MAX_ENTRY, err);
    struct import_file file = { .label = label, .name = input->name, .bytes = buf_str(&bytes), .n = bytes.n };

    if (!code && !input->is_regular && import_kind_of(input->name) == IMPORT_UNKNOWN) {
        struct archive_source source = { .label = label, .bytes = file.bytes, .n = file.n };
        code = import_is_binary(&file, IMPORT_DOCUMENT, err) ? err->code : import_archive(im, &source, err);
    } else if (!code) {
        code = ARCHIVE_NONE;
    }
    if (code == ARCHIVE_NONE) {
        bool refused = input->found == INPUT_NAMED && import_is_binary(&file, IMPORT_BINARY, err);
        code = refused ? err->code : import_bytes(im, &file, err);
    }
    buf_release(&bytes);
    return code;
}

/* A regular file whose name does not say what it holds: a document, which is refused, an archive or a compressed file.
 * ARCHIVE_NONE: something else. */
static int import_container(struct import *im, const struct input *input, const char *label, struct err *err)
{
    struct archive_source source = { .label = label, .path = input->path };
    struct file_map map;

    if (file_map(&map, input->path, err))
        return err->code;
    struct import_file file = { .label = label, .name = input->name, .bytes = map.at, .n = map.n };
    bool document = import_is_binary(&file, IMPORT_DOCUMENT, err);
    file_unmap(&map);
    if (document)
        return input->found == INPUT_NAMED ? err->code : import_leave_out(im, err);
    int code = import_archive(im, &source, err);
    return code == ARCHIVE_NONE ? import_unpacked(im, input, label, err) : code;
}

static int import_input(struct import *im, const struct input *input, struct err *err)
{
    struct buf label = { 0 };
    int code = ARCHIVE_NONE;

    buf_printf(&label, strcmp(input->path, "-") == 0 ? "standard input" : "'%s'", input->path);
    if (buf_failed(&label))
        return err_nomem(err);
    if (input->is_regular && import_kind_of(input->name) == IMPORT_UNKNOWN)
        code = import_container(im, input, label.at, err);
    if (code == ARCHIVE_NONE)
        code = import_read(im, input, label.at, err);
    buf_release(&label);
    return code;
}

static int import_file(struct import *im, const char *path, struct err *err)
{
    struct stat st;
    struct input input = { .path = path, .name = path, .found = INPUT_NAMED };

    if (is_unwanted(im, path))
        return 0;
    if (strcmp(path, "-") == 0)
        input.name = "stdin";
    else
        input.is_regular = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    return import_input(im, &input, err);
}

/* ---- folders ---------------------------------------------------------------- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int import_node(struct import *im, FTS *tree, FTSENT *node, struct err *err)
{
    bool is_dot = node->fts_name[0] == '.';
    struct input input = {
        .path = node->fts_path, .name = node->fts_path, .is_regular = true, .found = INPUT_IN_FOLDER
    };

    switch (node->fts_info) {
    case FTS_D:
        if (is_dot && node->fts_level != FTS_ROOTLEVEL)
            fts_set(tree, node, FTS_SKIP);
        return 0;
    case FTS_F:
        if (im->output && file_same(im->output, node->fts_path))
            return err_set(err, ERR_USAGE, "--output would replace '%s', which is in a folder to import",
                           node->fts_path);
        return is_dot || is_unwanted(im, node->fts_path) ? 0 : import_input(im, &input, err);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS: return err_set(err, ERR_IO, "cannot read '%s': %s", node->fts_path, strerror(node->fts_errno));
    default: return 0; /* a link, a pipe, a device; a folder on the way up */
    }
}

static int import_folder(struct import *im, const char *path, struct err *err)
{
    char *roots[] = { unconst(path), NULL };
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
    return file_is_dir(path) ? import_folder(im, path, err) : import_file(im, path, err);
}

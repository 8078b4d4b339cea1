/* table_image.c - parses an untrusted HDF5 file into a flat image (table_column.h) that is free of HDF5. Every link,
 * type, shape, layout and size is checked before a byte of a dataset is read.
 *
 * Runs in a child process (table_read.c) and ends with it, so nothing is closed or freed here on failure.
 *
 * Refused, because no table needs them and each lets a file reach outside itself or into rarely tested code: soft and
 * external links, external and virtual storage, filters other than deflate, shuffle and fletcher32, plugins.
 */
#include "profiler/table/table_column.h"

#include <errno.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct source {
    hid_t file;
    uint64_t file_bytes;
    int fd;            // of the image
    uint64_t fd_bytes; // its length
    struct image_head head;
};

enum { TEXT_LIMIT = 64 << 20, CHUNK_LIMIT = 256 << 20 }; // most bytes of a string, of a chunk

/* ---- the image ---------------------------------------------------------- */

/* A span of the image while it is filled. */
struct window {
    void *start; // of the mapping
    size_t bytes;
    char *at; // the beginning of the span
};

/* Extends the image by `bytes` zeros and maps them. window_close(), or the end of the process, unmaps them. */
static int window_open(struct window *w, struct source *s, struct image_span *span, uint64_t bytes, struct err *err)
{
    const uint64_t page = 65536; // a multiple of every page size
    uint64_t at = (s->fd_bytes + IMAGE_ALIGN - 1) / IMAGE_ALIGN * IMAGE_ALIGN, start = at / page * page;

    w->bytes = at - start + (bytes ? bytes : 1);
    if (ftruncate(s->fd, (off_t)(start + w->bytes)))
        return err_set(err, ERR_NOMEM, "no memory for %llu bytes", (unsigned long long)bytes);
    w->start = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s->fd, (off_t)start);
    if (w->start == MAP_FAILED)
        return err_nomem(err);
    w->at = (char *)w->start + (at - start);
    s->fd_bytes = start + w->bytes;
    *span = (struct image_span){ .at = at, .bytes = bytes };
    return 0;
}

static void window_close(struct window *w)
{
    munmap(w->start, w->bytes);
}

/* ---- HDF5's errors, links and types --------------------------------------- */

static herr_t take_cause(unsigned n, const H5E_error2_t *e, void *arg)
{
    if (n == 0 && e->desc)
        snprintf(arg, 256, "%s", e->desc);
    return 0;
}

/* Sets the innermost of HDF5's errors, which names the cause; the outer ones name functions. */
static int hdf5_failed(struct err *err, const char *what)
{
    char cause[256] = "unknown";

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_cause, cause);
    return err_set(err, ERR_FORMAT, "cannot read its %s: %s", what, cause);
}

/* 1: the path exists and all its links are hard; 0: it does not exist; else an error. */
static int find_path(hid_t file, const char *path, struct err *err)
{
    char prefix[64];

    for (const char *end = path + 1;; end++) {
        if (*end && *end != '/')
            continue;
        snprintf(prefix, sizeof(prefix), "%.*s", (int)(end - path), path);
        htri_t there = H5Lexists(file, prefix, H5P_DEFAULT);
        H5L_info_t info;
        if (there == 0)
            return 0;
        if (there < 0 || H5Lget_info(file, prefix, &info, H5P_DEFAULT) < 0)
            return hdf5_failed(err, prefix);
        if (info.type != H5L_TYPE_HARD)
            return err_set(err, ERR_FORMAT, "'%s' is a soft or external link", prefix);
        if (!*end)
            return 1;
    }
}

static bool type_fits(hid_t type, enum column_type want)
{
    H5T_class_t class = H5Tget_class(type);

    if (want == COLUMN_TEXT)
        return class == H5T_STRING && H5Tis_variable_str(type) > 0;
    if (want == COLUMN_F32 && class == H5T_FLOAT && H5Tget_size(type) == sizeof(double))
        return true; /* HDF5 rounds */
    if (H5Tget_size(type) != column_size(want))
        return false;
    if (want == COLUMN_F32 || want == COLUMN_F64)
        return class == H5T_FLOAT;
    return class == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
}

static const char *type_name(enum column_type type)
{
    static const char *const name[] = { "strings of variable length", "int64", "int32", "float64", "float32" };

    return name[type];
}

/* ---- datasets ------------------------------------------------------------ */

static int check_filters(hid_t plan, const char *path, struct err *err)
{
    int n = H5Pget_nfilters(plan);

    for (int i = 0; i < n; i++) {
        unsigned flags = 0;
        size_t n_values = 0;
        H5Z_filter_t filter = H5Pget_filter2(plan, (unsigned)i, &flags, &n_values, NULL, 0, NULL, NULL);
        if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
            return err_set(err, ERR_FORMAT, "'%s' is stored with a filter other than gzip, shuffle, fletcher32", path);
    }
    return n < 0 ? hdf5_failed(err, path) : 0;
}

/* bytes: the size from shape and type. The file must be at least that large, or 1/1100 of it with deflate. */
static int check_storage(const struct source *s, hid_t dataset, const char *path, uint64_t bytes, struct err *err)
{
    const uint64_t deflate_max = 1100;
    hid_t plan = H5Dget_create_plist(dataset);
    hsize_t stored = H5Dget_storage_size(dataset), chunk[3] = { 1, 1, 1 };
    uint64_t chunk_bytes = H5Tget_size(H5Dget_type(dataset));

    if (plan < 0)
        return hdf5_failed(err, path);
    H5D_layout_t layout = H5Pget_layout(plan);
    if (layout == H5D_VIRTUAL || H5Pget_external_count(plan) != 0)
        return err_set(err, ERR_FORMAT, "'%s' is stored in another file", path);
    if (check_filters(plan, path, err))
        return err->code;
    if (layout == H5D_CHUNKED) {
        if (H5Pget_chunk(plan, 3, chunk) < 0)
            return hdf5_failed(err, path);
        for (int i = 0; i < 3; i++)
            if (__builtin_mul_overflow(chunk_bytes, chunk[i], &chunk_bytes) || chunk_bytes > CHUNK_LIMIT)
                return err_set(err, ERR_FORMAT, "'%s' has chunks above %d MiB", path, CHUNK_LIMIT >> 20);
    }
    uint64_t max = layout == H5D_CHUNKED ? deflate_max * s->file_bytes : s->file_bytes;
    if (stored > s->file_bytes || bytes > max || (bytes > 0 && stored == 0))
        return err_set(err, ERR_FORMAT, "'%s' claims more data than the file holds", path);
    return 0;
}

static int axis_of(char letter)
{
    return (int)(strchr(TABLE_AXIS_LETTERS, letter) - TABLE_AXIS_LETTERS);
}

/* Sets the lengths of new axes, compares the others. *n: the number of elements. */
static int check_shape(struct source *s, hid_t dataset, const struct column *c, size_t *n, struct err *err)
{
    hid_t space = H5Dget_space(dataset);
    hsize_t dim[3] = { 0 };
    int n_dims = H5Sget_simple_extent_ndims(space), want = (int)strlen(c->shape);

    if (n_dims != want)
        return err_set(err, ERR_FORMAT, "'%s' has %d dimensions, not %d", c->path, n_dims, want);
    if (H5Sget_simple_extent_dims(space, dim, NULL) < 0)
        return hdf5_failed(err, c->path);
    *n = 1;
    for (int i = 0; i < n_dims; i++) {
        int axis = axis_of(c->shape[i]);
        if (dim[i] > INT32_MAX)
            return err_set(err, ERR_FORMAT, "'%s' is too large", c->path);
        if (s->head.n[axis] < 0)
            s->head.n[axis] = (int32_t)dim[i];
        if (dim[i] != (hsize_t)s->head.n[axis])
            return err_set(err, ERR_FORMAT, "'%s' has %llu rows along dimension %d, not %d", c->path,
                           (unsigned long long)dim[i], i, s->head.n[axis]);
        if (__builtin_mul_overflow(*n, (size_t)dim[i], n) || *n > COLUMN_LIMIT)
            return err_set(err, ERR_FORMAT, "'%s' is too large", c->path);
    }
    return 0;
}

/* Opens a dataset and checks what needs no reading. *n: its elements. *dataset: -1 for an allowed absence. */
static int open_column(struct source *s, const struct column *c, hid_t *dataset, size_t *n, struct err *err)
{
    int found = find_path(s->file, c->path, err);

    *dataset = -1;
    if (found < 0)
        return err->code;
    if (found == 0)
        return c->need != NEEDED ? 0 : err_set(err, ERR_FORMAT, "it has no dataset '%s'", c->path);
    *dataset = H5Dopen2(s->file, c->path, H5P_DEFAULT);
    if (*dataset < 0)
        return hdf5_failed(err, c->path);
    hid_t type = H5Dget_type(*dataset);
    if (type < 0)
        return hdf5_failed(err, c->path);
    if (!type_fits(type, c->type))
        return err_set(err, ERR_FORMAT, "'%s' does not hold %s", c->path, type_name(c->type));
    if (check_shape(s, *dataset, c, n, err))
        return err->code;
    return check_storage(s, *dataset, c->path, *n * H5Tget_size(type), err);
}

/* An open dataset and its span of the image. */
struct reading {
    const struct column *column;
    struct image_span *span;
    hid_t dataset;
    size_t n; // elements
};

/* Strings one after another, each with its NUL; a string that was never written is empty. */
static int add_texts(struct source *s, struct image_span *span, char *const *text, size_t n, struct err *err)
{
    uint64_t total = 0;

    for (size_t i = 0; i < n; i++) {
        size_t length = text[i] ? strlen(text[i]) : 0;
        if (length > TEXT_LIMIT)
            return err_set(err, ERR_FORMAT, "a string above %d MiB", TEXT_LIMIT >> 20);
        total += length + 1;
    }
    struct window w;
    if (window_open(&w, s, span, total, err))
        return err->code;
    for (size_t i = 0; i < n; i++) {
        size_t length = text[i] ? strlen(text[i]) : 0;
        memcpy(w.at, text[i] ? text[i] : "", length + 1);
        w.at += length + 1;
    }
    window_close(&w);
    return 0;
}

static int read_texts(struct source *s, const struct reading *r, struct err *err)
{
    char **text = calloc(r->n + 1, sizeof(*text));
    hid_t type = H5Dget_type(r->dataset);

    if (!text)
        return err_nomem(err);
    if (r->n > 0 && H5Dread(r->dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0)
        return hdf5_failed(err, r->column->path);
    if (add_texts(s, r->span, text, r->n, err))
        return err_wrap(err, "'%s'", r->column->path);
    if (r->n > 0 && H5Dvlen_reclaim(type, H5Dget_space(r->dataset), H5P_DEFAULT, text) < 0)
        return hdf5_failed(err, r->column->path);
    free(text);
    return 0;
}

static int read_numbers(struct source *s, const struct reading *r, struct err *err)
{
    enum column_type is = r->column->type;
    hid_t type = is == COLUMN_I64   ? H5T_NATIVE_INT64
                 : is == COLUMN_I32 ? H5T_NATIVE_INT32
                 : is == COLUMN_F64 ? H5T_NATIVE_DOUBLE
                                    : H5T_NATIVE_FLOAT;
    struct window w;

    if (window_open(&w, s, r->span, r->n * column_size(is), err))
        return err->code;
    if (r->n > 0 && H5Dread(r->dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, w.at) < 0)
        return hdf5_failed(err, r->column->path);
    window_close(&w);
    return 0;
}

/* Adds the values for "absent" in place of a missing dataset. The lengths of its axes are known, because required
 * columns come first. */
static int add_absent(struct source *s, const struct reading *r, struct err *err)
{
    size_t n = 1, size = r->column->type == COLUMN_TEXT ? 1 : column_size(r->column->type);
    struct window w;

    for (const char *letter = r->column->shape; *letter; letter++)
        if (__builtin_mul_overflow(n, (size_t)s->head.n[axis_of(*letter)], &n) || n > COLUMN_LIMIT)
            return err_set(err, ERR_FORMAT, "'%s' is too large", r->column->path);
    if (window_open(&w, s, r->span, n * size, err))
        return err->code;
    if (r->column->type != COLUMN_TEXT) // empty strings are NULs, and the image is zeros
        column_fill_absent(r->column, w.at, n);
    window_close(&w);
    return 0;
}

static int read_column(struct source *s, int i, struct err *err)
{
    struct reading r = { .column = &table_columns[i], .span = &s->head.column[i] };

    if (open_column(s, r.column, &r.dataset, &r.n, err))
        return err->code;
    if (r.dataset < 0)
        return add_absent(s, &r, err);
    int code = r.column->type == COLUMN_TEXT ? read_texts(s, &r, err) : read_numbers(s, &r, err);
    H5Dclose(r.dataset);
    return code;
}

/* ---- attributes ----------------------------------------------------------- */

struct opened {
    hid_t id, type;
    bool scalar;
};

/* Opens an attribute of the file. 1: open; 0: absent; else an error. */
static int open_attribute(const struct source *s, const char *name, struct opened *a, struct err *err)
{
    if (H5Aexists(s->file, name) <= 0)
        return 0;
    a->id = H5Aopen(s->file, name, H5P_DEFAULT);
    a->type = a->id < 0 ? a->id : H5Aget_type(a->id);
    hid_t space = a->id < 0 ? a->id : H5Aget_space(a->id);
    if (a->type < 0 || space < 0)
        return hdf5_failed(err, name);
    a->scalar = H5Sget_simple_extent_type(space) == H5S_SCALAR;
    return 1;
}

/* Reads a string; *text stays NULL when the attribute is absent. */
static int read_text_attribute(struct source *s, const char *name, char **text, struct err *err)
{
    struct opened a;
    int found = open_attribute(s, name, &a, err);

    if (found <= 0)
        return found;
    if (!a.scalar || !type_fits(a.type, COLUMN_TEXT))
        return err_set(err, ERR_FORMAT, "attribute '%s' is not one string of variable length", name);
    return H5Aread(a.id, a.type, text) < 0 ? hdf5_failed(err, name) : 0;
}

/* Reads an integer of any size; leaves *v when the attribute is absent. */
static int read_int_attribute(struct source *s, const char *name, int64_t *v, struct err *err)
{
    struct opened a;
    int found = open_attribute(s, name, &a, err);

    if (found <= 0)
        return found;
    if (!a.scalar || H5Tget_class(a.type) != H5T_INTEGER)
        return err_set(err, ERR_FORMAT, "attribute '%s' is not one integer", name);
    return H5Aread(a.id, H5T_NATIVE_INT64, v) < 0 ? hdf5_failed(err, name) : 0;
}

/* Reads a float of any size; leaves *v when the attribute is absent. */
static int read_real_attribute(struct source *s, const char *name, double *v, struct err *err)
{
    struct opened a;
    int found = open_attribute(s, name, &a, err);

    if (found <= 0)
        return found;
    if (!a.scalar || H5Tget_class(a.type) != H5T_FLOAT)
        return err_set(err, ERR_FORMAT, "attribute '%s' is not one real number", name);
    return H5Aread(a.id, H5T_NATIVE_DOUBLE, v) < 0 ? hdf5_failed(err, name) : 0;
}

static int read_attributes(struct source *s, struct err *err)
{
    char *kind = NULL, *text[TABLE_ATTRIBUTES] = { 0 };
    int64_t version = -1;

    if (read_text_attribute(s, "evp", &kind, err))
        return err->code;
    if (!kind || strcmp(kind, "table") != 0)
        return err_set(err, ERR_FORMAT, "it is an HDF5 file but not a table: its attribute 'evp' is not 'table'");
    if (read_int_attribute(s, "version", &version, err))
        return err->code;
    if (version != TABLE_VERSION)
        return err_set(err, ERR_FORMAT, "it is of version %lld; this program reads version %d", (long long)version,
                       TABLE_VERSION);
    for (int i = 0; i < TABLE_ATTRIBUTES; i++)
        if (read_text_attribute(s, table_attributes[i].name, &text[i], err))
            return err->code;
    s->head.max_new_tokens = -1;
    if (read_int_attribute(s, "max_new_tokens", &s->head.max_new_tokens, err) ||
        read_real_attribute(s, "temperature", &s->head.temperature, err))
        return err->code;
    return add_texts(s, &s->head.attributes, text, TABLE_ATTRIBUTES, err) ? err_wrap(err, "attributes") : 0;
}

/* ---- the whole ------------------------------------------------------------ */

static int open_file(struct source *s, const char *path, struct err *err)
{
    struct stat st;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
    if (stat(path, &st))
        return err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    s->file_bytes = (uint64_t)st.st_size;
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    s->file = H5Fopen(path, H5F_ACC_RDONLY, access);
    return s->file < 0 ? hdf5_failed(err, "superblock") : 0;
}

/* 1: the file has a dataset of the section, so it must have all; 0: none; else an error. */
static int has_section(const struct source *s, enum column_section section, struct err *err)
{
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        int found = table_columns[i].section == section ? find_path(s->file, table_columns[i].path, err) : 0;
        if (found)
            return found;
    }
    return 0;
}

static int read_sections(struct source *s, enum table_want want, struct err *err)
{
    int has[TABLE_SECTIONS] = { [SECTION_PROFILE] = 1 };

    for (enum column_section section = SECTION_PROFILE + 1; section < TABLE_SECTIONS; section++) {
        has[section] = has_section(s, section, err);
        if (has[section] < 0)
            return err->code;
    }
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        hid_t dataset;
        size_t n;
        bool names_axis = c->at == offsetof(struct table, question_id);
        if (!has[c->section] || (want != TABLE_ALL && !c->plan && !names_axis))
            continue;
        int code = want != TABLE_ALL && names_axis ? open_column(s, c, &dataset, &n, err) : read_column(s, i, err);
        if (code)
            return code;
    }
    return 0;
}

int table_image(int fd, const char *path, enum table_want want, struct err *err)
{
    struct source s = { .fd = fd, .fd_bytes = sizeof(struct image_head) };

    for (int i = 0; i < TABLE_AXES; i++)
        s.head.n[i] = -1;
    if (open_file(&s, path, err) || read_attributes(&s, err) || read_sections(&s, want, err))
        return err->code;
    for (int i = 0; i < TABLE_AXES; i++)
        if (s.head.n[i] < 0)
            s.head.n[i] = 0;
    memcpy(s.head.magic, IMAGE_MAGIC, sizeof(s.head.magic));
    if (pwrite(fd, &s.head, sizeof(s.head), 0) != (ssize_t)sizeof(s.head))
        return err_nomem(err);
    return 0;
}

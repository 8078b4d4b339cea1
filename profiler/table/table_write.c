/* table_write.c - the same content gives the same bytes: object headers have no times, the format version is fixed. All
 * metadata and all chunks of numbers have checksums, so reading finds damage. Nothing is compressed, because a table of
 * a million contexts must be read in a second. */
#include "base/file.h"
#include "profiler/table/table_column.h"

#include <errno.h>
#include <hdf5.h>
#include <string.h>

enum { CHUNK_ELEMENTS = 1 << 16 }; // half a megabyte of numbers: fits HDF5's chunk cache of one megabyte

struct sink {
    hid_t file, text, group_plan, dataset_plan;
};

static hid_t file_type(enum column_type type, hid_t text)
{
    switch (type) {
    case COLUMN_TEXT: return text;
    case COLUMN_I64: return H5T_STD_I64LE;
    case COLUMN_I32: return H5T_STD_I32LE;
    case COLUMN_F64: return H5T_IEEE_F64LE;
    case COLUMN_F32: break;
    }
    return H5T_IEEE_F32LE;
}

static hid_t memory_type(enum column_type type, hid_t text)
{
    switch (type) {
    case COLUMN_TEXT: return text;
    case COLUMN_I64: return H5T_NATIVE_INT64;
    case COLUMN_I32: return H5T_NATIVE_INT32;
    case COLUMN_F64: return H5T_NATIVE_DOUBLE;
    case COLUMN_F32: break;
    }
    return H5T_NATIVE_FLOAT;
}

static bool write_attribute(const struct sink *s, const char *name, hid_t file_as, hid_t memory_as, const void *value)
{
    hid_t scalar = H5Screate(H5S_SCALAR);
    hid_t a = H5Acreate2(s->file, name, file_as, scalar, H5P_DEFAULT, H5P_DEFAULT);
    bool good = a >= 0 && H5Awrite(a, memory_as, value) >= 0;

    if (a >= 0 && H5Aclose(a) < 0)
        good = false;
    H5Sclose(scalar);
    return good;
}

static bool write_attributes(const struct sink *s, const struct table *t)
{
    const char *kind = "table";
    int64_t version = TABLE_VERSION;

    if (!write_attribute(s, "evp", s->text, s->text, &kind) ||
        !write_attribute(s, "version", H5T_STD_I64LE, H5T_NATIVE_INT64, &version) ||
        !write_attribute(s, "max_new_tokens", H5T_STD_I64LE, H5T_NATIVE_INT64, &t->max_new_tokens) ||
        !write_attribute(s, "temperature", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &t->temperature))
        return false;
    for (int i = 0; i < TABLE_ATTRIBUTES; i++) {
        const char *text = attribute_get(t, &table_attributes[i]);
        if (!write_attribute(s, table_attributes[i].name, s->text, s->text, &text))
            return false;
    }
    return true;
}

/* Makes a dataset's group: "/cells" for "/cells/bytes". */
static bool make_group(const struct sink *s, const char *path)
{
    char group[32];

    snprintf(group, sizeof(group), "%.*s", (int)(strrchr(path, '/') - path), path);
    if (H5Lexists(s->file, group, H5P_DEFAULT) > 0)
        return true;
    hid_t g = H5Gcreate2(s->file, group, H5P_DEFAULT, s->group_plan, H5P_DEFAULT);
    return g >= 0 && H5Gclose(g) >= 0;
}

/* Chunks have whole rows: about CHUNK_ELEMENTS, or one row. Empty datasets have no chunks. Neither have strings: they
 * are in HDF5's heap, which has no checksums. */
static void plan_chunks(hid_t plan, enum column_type type, const hsize_t *dim, int n_dims)
{
    hsize_t chunk[3] = { 1, 1, 1 }, row = 1;

    for (int i = 1; i < n_dims; i++) {
        chunk[i] = dim[i];
        row *= dim[i];
    }
    if (row == 0 || dim[0] == 0 || type == COLUMN_TEXT)
        return;
    chunk[0] = row >= CHUNK_ELEMENTS ? 1 : CHUNK_ELEMENTS / row;
    if (chunk[0] > dim[0])
        chunk[0] = dim[0];
    H5Pset_chunk(plan, n_dims, chunk);
    H5Pset_fletcher32(plan);
}

static bool write_column(const struct sink *s, const struct table *t, const struct column *c)
{
    hsize_t dim[3];
    int n_dims = (int)strlen(c->shape);

    for (int i = 0; i < n_dims; i++)
        dim[i] = (hsize_t)table_axis(t, c->shape[i]);
    if (!make_group(s, c->path))
        return false;
    hid_t space = H5Screate_simple(n_dims, dim, NULL), plan = H5Pcopy(s->dataset_plan);
    plan_chunks(plan, c->type, dim, n_dims);
    hid_t d = H5Dcreate2(s->file, c->path, file_type(c->type, s->text), space, H5P_DEFAULT, plan, H5P_DEFAULT);
    bool good =
        d >= 0 && H5Dwrite(d, memory_type(c->type, s->text), H5S_ALL, H5S_ALL, H5P_DEFAULT, column_get(t, c)) >= 0;
    if (d >= 0 && H5Dclose(d) < 0)
        good = false;
    H5Pclose(plan);
    H5Sclose(space);
    return good;
}

static bool write_all(const struct sink *s, const struct table *t)
{
    if (!write_attributes(s, t))
        return false;
    for (int i = 0; i < TABLE_COLUMNS; i++)
        if (column_get(t, &table_columns[i]) && !write_column(s, t, &table_columns[i]))
            return false;
    return H5Fflush(s->file, H5F_SCOPE_GLOBAL) >= 0;
}

static bool write_file(const struct table *t, const char *path)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    struct sink s = { .text = H5Tcopy(H5T_C_S1),
                      .group_plan = H5Pcreate(H5P_GROUP_CREATE),
                      .dataset_plan = H5Pcreate(H5P_DATASET_CREATE) };

    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_obj_track_times(create, 0);
    H5Pset_obj_track_times(s.group_plan, 0);
    H5Pset_obj_track_times(s.dataset_plan, 0);
    H5Tset_size(s.text, H5T_VARIABLE);
    H5Tset_cset(s.text, H5T_CSET_UTF8);
    s.file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
    bool good = s.file >= 0 && write_all(&s, t);
    if (s.file >= 0 && H5Fclose(s.file) < 0)
        good = false;
    H5Tclose(s.text);
    H5Pclose(s.dataset_plan);
    H5Pclose(s.group_plan);
    H5Pclose(create);
    H5Pclose(access);
    return good;
}

int table_write(const struct table *t, const char *path, struct err *err)
{
    struct file_out out;

    if (table_check(t, err))
        return err_wrap(err, "cannot write '%s'", path);
    if (file_create_named(&out, path, err))
        return err->code;
    H5dont_atexit(); // else HDF5 would write again at exit after a failed write
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    errno = out.temp ? 0 : ESPIPE; // a table cannot be written to a device or pipe
    if (!out.temp || !write_file(t, out.temp)) {
        err_set(err, ERR_IO, "cannot write '%s': %s", path, errno ? strerror(errno) : "libhdf5 failed");
        file_abort(&out);
        return err->code;
    }
    return file_commit(&out, err);
}

/* safetensors.c - the container, read with suspicion: every number in the header is checked against the file before a
 * pointer is made from it. As the format demands, the tensors cover the data without holes, in any order.
 */
#include "base/safetensors.h"

#include "base/magic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 8, HEADER_MAX = 100 * 1000 * 1000 }; /* the same limit as Hugging Face's own reader */

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [ST_F32] = { "F32", 4 },         [ST_F16] = { "F16", 2 },   [ST_BF16] = { "BF16", 2 },
    [ST_I32] = { "I32", 4 },         [ST_I64] = { "I64", 8 },   [ST_U8] = { "U8", 1 },
    [ST_I8] = { "I8", 1 },           [ST_BOOL] = { "BOOL", 1 }, [ST_F8_E4M3] = { "F8_E4M3", 1 },
    [ST_F8_E8M0] = { "F8_E8M0", 1 }, [ST_OTHER] = { "?", 0 },
};

const char *st_type_name(enum st_type type)
{
    return types[type].name;
}

static enum st_type type_of(const char *name)
{
    int type = 0;

    while (type < ST_OTHER && strcmp(types[type].name, name) != 0)
        type++;
    return (enum st_type)type;
}

/* ---- reading ----------------------------------------------------------- */

/* A whole number from 0 to 2^53, the integers that JSON holds exactly. */
static bool natural(const struct json *v, uint64_t *out)
{
    double d = json_real(v);

    if (!(d >= 0 && d <= 0x1p53) || d != floor(d))
        return false;
    *out = (uint64_t)d;
    return true;
}

static int read_shape(struct st_tensor *t, const struct json *shape, struct err *err)
{
    if (!json_is_array(shape))
        return err_set(err, ERR_FORMAT, "no shape");
    for (const struct json *d = json_first(shape); d; d = json_next(d)) {
        uint64_t dim;
        if (t->n_dims == ST_DIMS)
            return err_set(err, ERR_FORMAT, "more than %d dimensions", ST_DIMS);
        if (!natural(d, &dim))
            return err_set(err, ERR_FORMAT, "dimension %d is not a whole number", t->n_dims);
        t->dim[t->n_dims++] = (int64_t)dim;
    }
    return 0;
}

/* dims * size of an element; false when that exceeds 64 bits. */
static bool shape_bytes(const struct st_tensor *t, uint64_t *bytes)
{
    *bytes = types[t->type].size;
    for (int i = 0; i < t->n_dims; i++)
        if (__builtin_mul_overflow(*bytes, (uint64_t)t->dim[i], bytes))
            return false;
    return true;
}

/* The data section: n bytes at offset `first` of the file. at NULL: not in memory. */
struct data {
    const char *at;
    uint64_t first, n;
};

/* One member of the header. */
static int read_tensor(struct st_tensor *t, const struct json *entry, const struct data *data, struct err *err)
{
    const char *type;
    uint64_t begin, end, bytes;

    if (json_want_text(entry, "dtype", &type, err))
        return err->code;
    t->type = type_of(type);
    if (read_shape(t, json_get(entry, "shape"), err))
        return err->code;
    const struct json *offsets = json_get(entry, "data_offsets");
    if (json_count(offsets) != 2 || !natural(json_at(offsets, 0), &begin) || !natural(json_at(offsets, 1), &end))
        return err_set(err, ERR_FORMAT, "data_offsets are not two whole numbers");
    if (begin > end || end > data->n)
        return err_set(err, ERR_FORMAT, "data_offsets [%llu, %llu] are outside the %llu bytes of data",
                       (unsigned long long)begin, (unsigned long long)end, (unsigned long long)data->n);
    t->at = data->at ? data->at + begin : NULL;
    t->offset = data->first + begin;
    t->bytes = end - begin;
    if (t->type != ST_OTHER && (!shape_bytes(t, &bytes) || bytes != t->bytes))
        return err_set(err, ERR_FORMAT, "its shape of type %s does not take %llu bytes", type,
                       (unsigned long long)t->bytes);
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct st_tensor *x = *(const struct st_tensor *const *)a, *y = *(const struct st_tensor *const *)b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* No overlap, no hole, nothing after the last tensor. */
static int check_cover(const struct safetensors *st, const struct data *data, struct err *err)
{
    const struct st_tensor **order = malloc(((size_t)st->n + 1) * sizeof(*order));
    uint64_t at = data->first, end = data->first + data->n;

    if (!order)
        return err_nomem(err);
    for (int i = 0; i < st->n; i++)
        order[i] = &st->tensor[i];
    qsort(order, (size_t)st->n, sizeof(*order), by_place);
    int bad = 0;
    while (bad < st->n && order[bad]->offset == at)
        at += order[bad++]->bytes;
    if (bad < st->n)
        err_set(err, ERR_FORMAT, "tensor '%s' %s", order[bad]->name,
                order[bad]->offset < at ? "overlaps another" : "follows a hole");
    else if (at != end)
        err_set(err, ERR_FORMAT, "%llu bytes of data belong to no tensor", (unsigned long long)(end - at));
    bool whole = bad == st->n && at == end;
    free(order);
    return whole ? 0 : err->code;
}

static int check_metadata(const struct json *meta, struct err *err)
{
    if (!json_is_object(meta))
        return err_set(err, ERR_FORMAT, "__metadata__ is not an object");
    for (const struct json *m = json_first(meta); m; m = json_next(m))
        if (!json_is_text(m))
            return err_set(err, ERR_FORMAT, "metadata '%s' is not a string", json_name(m));
    return 0;
}

static int read_header(struct safetensors *st, const struct data *data, struct err *err)
{
    if (!json_is_object(st->header))
        return err_set(err, ERR_FORMAT, "the header is not an object");
    st->tensor = calloc((size_t)json_count(st->header) + 1, sizeof(*st->tensor));
    if (!st->tensor)
        return err_nomem(err);
    for (const struct json *m = json_first(st->header); m; m = json_next(m)) {
        const char *name = json_name(m);
        if (strcmp(name, "__metadata__") == 0) {
            if (check_metadata(m, err))
                return err->code;
            continue;
        }
        bool added;
        if (map_add(&st->names, name, strlen(name), &added) < 0)
            return err_nomem(err);
        if (!added)
            return err_set(err, ERR_FORMAT, "tensor '%s' comes twice", name);
        struct st_tensor *t = &st->tensor[st->n++];
        t->name = name;
        if (read_tensor(t, m, data, err))
            return err_wrap(err, "tensor '%s'", name);
    }
    return check_cover(st, data, err);
}

uint64_t safetensors_header_bytes(const void *first)
{
    const unsigned char *p = first;
    uint64_t header = 0;

    for (int i = 0; i < PREFIX; i++)
        header |= (uint64_t)p[i] << (8 * i);
    return header > UINT64_MAX - PREFIX ? UINT64_MAX : header + PREFIX;
}

/* Of a file of `size` bytes, the first n are in memory: all, or only the header. */
static int parse(struct safetensors *st, const char *bytes, size_t n, uint64_t size, struct err *err)
{
    uint64_t header = n < PREFIX ? 0 : safetensors_header_bytes(bytes);

    *st = (struct safetensors){ 0 };
    if (n < PREFIX)
        return err_set(err, ERR_FORMAT, "too short for a safetensors file: %zu bytes", n);
    if (header > (uint64_t)HEADER_MAX + PREFIX)
        return err_set(err, ERR_FORMAT, "not a safetensors file: its header would have %llu bytes",
                       (unsigned long long)header - PREFIX);
    if (header > n || header > size)
        return err_set(err, ERR_FORMAT, "truncated: a header of %llu bytes in a file of %zu",
                       (unsigned long long)header - PREFIX, n);
    const struct data data = { n == size ? bytes + header : NULL, header, size - header };
    st->header = json_parse(bytes + PREFIX, (size_t)header - PREFIX, err);
    if (st->header && read_header(st, &data, err) == 0)
        return 0;
    err_wrap(err, "safetensors header");
    safetensors_close(st);
    return err->code;
}

int safetensors_parse(struct safetensors *st, const void *bytes, size_t n, struct err *err)
{
    return parse(st, bytes, n, n, err);
}

int safetensors_parse_header(struct safetensors *st, const void *bytes, size_t n, uint64_t size, struct err *err)
{
    return parse(st, bytes, n, size, err);
}

int safetensors_open(struct safetensors *st, const char *path, struct err *err)
{
    struct file_map map;

    *st = (struct safetensors){ 0 };
    if (file_map(&map, path, err))
        return err->code;
    if (safetensors_parse(st, map.at, map.n, err)) {
        file_unmap(&map);
        err_wrap(err, "'%s'", path);
        return magic_refuse(err, path, "a file of tensors");
    }
    st->map = map;
    return 0;
}

void safetensors_close(struct safetensors *st)
{
    free(st->tensor);
    map_release(&st->names);
    json_free(st->header);
    file_unmap(&st->map);
    *st = (struct safetensors){ 0 };
}

const struct st_tensor *safetensors_find(const struct safetensors *st, const char *name)
{
    int i = map_find(&st->names, name, strlen(name));

    return i < 0 ? NULL : &st->tensor[i];
}

const char *safetensors_meta(const struct safetensors *st, const char *key)
{
    return json_text(json_get(json_get(st->header, "__metadata__"), key));
}

/* ---- writing ----------------------------------------------------------- */

static int put_tensor(struct json_out *w, const struct st_tensor *t, uint64_t *offset, struct err *err)
{
    uint64_t bytes, end;

    if (t->type == ST_OTHER || t->n_dims < 0 || t->n_dims > ST_DIMS)
        return err_set(err, ERR_FAIL, "tensor '%s' has no type or shape that can be written", t->name);
    if (!shape_bytes(t, &bytes) || __builtin_add_overflow(*offset, bytes, &end) || end >= 1ull << 53)
        return err_set(err, ERR_FAIL, "tensor '%s' is too large to be written", t->name);
    json_begin(w, t->name, '{');
    json_put_text(w, "dtype", types[t->type].name);
    json_begin(w, "shape", '[');
    for (int i = 0; i < t->n_dims; i++)
        json_put_int(w, NULL, t->dim[i]);
    json_end(w, ']');
    json_begin(w, "data_offsets", '[');
    json_put_int(w, NULL, (int64_t)*offset);
    json_put_int(w, NULL, (int64_t)end);
    json_end(w, ']');
    json_end(w, '}');
    *offset = end;
    return 0;
}

int safetensors_write_header(struct file_out *out, const struct st_header *header, struct err *err)
{
    struct buf text = { 0 };
    struct json_out w = { .buf = &text };
    uint64_t offset = 0;
    int code = 0;

    json_begin(&w, NULL, '{');
    if (header->n_meta > 0) {
        json_begin(&w, "__metadata__", '{');
        for (int i = 0; i < header->n_meta; i++)
            json_put_text(&w, header->meta[i].key, header->meta[i].value);
        json_end(&w, '}');
    }
    for (int i = 0; i < header->n && code == 0; i++)
        code = put_tensor(&w, &header->tensor[i], &offset, err);
    json_end(&w, '}');
    while (text.n % PREFIX != 0 && !buf_failed(&text))
        buf_addc(&text, ' ');
    if (code == 0 && buf_failed(&text))
        code = err_nomem(err);
    for (int i = 0; i < PREFIX && code == 0; i++)
        putc((int)(text.n >> (8 * i) & 0xff), out->f);
    if (code == 0)
        fwrite(buf_str(&text), 1, text.n, out->f); /* file_commit() checks the stream for errors */
    buf_release(&text);
    return code;
}

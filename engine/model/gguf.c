/* gguf.c - the parser, in the order of the file: header, keys, table of tensors, data.
 *
 * A cursor that never leaves the file reads everything; an item that does not fit sets `cut`, which is checked after
 * each item. Values stay in the file: a key remembers the address of its value, and gguf_want_*() decode it.
 */
#include "engine/model/gguf.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { G_U8, G_I8, G_U16, G_I16, G_U32, G_I32, G_F32, G_BOOL, G_TEXT, G_ARRAY, G_U64, G_I64, G_F64, G_TYPES };

static const uint8_t value_size[G_TYPES] = {
    [G_U8] = 1,  [G_I8] = 1,   [G_U16] = 2, [G_I16] = 2, [G_U32] = 4, [G_I32] = 4,
    [G_F32] = 4, [G_BOOL] = 1, [G_U64] = 8, [G_I64] = 8, [G_F64] = 8,
};

/* ggml's tensor types: the supported ones, and the names of the others for the message. */
static const struct {
    uint32_t id;
    enum weight_type type; // WEIGHT_TYPES: not read
    const char *name;
} tensor_types[] = {
    { 0, WEIGHT_F32, "F32" },          { 1, WEIGHT_F16, "F16" },        { 2, WEIGHT_Q4_0, "Q4_0" },
    { 3, WEIGHT_Q4_1, "Q4_1" },        { 6, WEIGHT_Q5_0, "Q5_0" },      { 7, WEIGHT_Q5_1, "Q5_1" },
    { 8, WEIGHT_Q8_0, "Q8_0" },        { 30, WEIGHT_BF16, "BF16" },     { 9, WEIGHT_TYPES, "Q8_1" },
    { 10, WEIGHT_Q2_K, "Q2_K" },       { 11, WEIGHT_Q3_K, "Q3_K" },     { 12, WEIGHT_Q4_K, "Q4_K" },
    { 13, WEIGHT_Q5_K, "Q5_K" },       { 14, WEIGHT_Q6_K, "Q6_K" },     { 15, WEIGHT_TYPES, "Q8_K" },
    { 20, WEIGHT_IQ4_NL, "IQ4_NL" },   { 23, WEIGHT_IQ4_XS, "IQ4_XS" }, { 28, WEIGHT_TYPES, "F64" },
    { 18, WEIGHT_IQ3_XXS, "IQ3_XXS" }, { 21, WEIGHT_IQ3_S, "IQ3_S" },   { 39, WEIGHT_MXFP4, "MXFP4" },
    { 16, WEIGHT_TYPES, "IQ2_XXS" },   { 17, WEIGHT_TYPES, "IQ2_XS" },  { 22, WEIGHT_TYPES, "IQ2_S" },
    { 19, WEIGHT_TYPES, "IQ1_S" },     { 29, WEIGHT_TYPES, "IQ1_M" },   { 34, WEIGHT_TYPES, "TQ1_0" },
    { 35, WEIGHT_TYPES, "TQ2_0" },
};

/* ---- a cursor that never leaves the file ------------------------------- */

struct cursor {
    const uint8_t *at, *end;
    bool cut; // an item did not fit; from then on everything reads as 0
};

static uint64_t little(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static const uint8_t *take(struct cursor *c, uint64_t n)
{
    if (c->cut || n > (uint64_t)(c->end - c->at)) {
        c->cut = true;
        return NULL;
    }
    c->at += n;
    return c->at - n;
}

static uint64_t take_number(struct cursor *c, size_t bytes)
{
    const uint8_t *p = take(c, bytes);

    return p ? little(p, bytes) : 0;
}

static struct text_view take_text(struct cursor *c)
{
    uint64_t n = take_number(c, 8);
    const uint8_t *p = take(c, n);

    return (struct text_view){ p ? (const char *)p : "", p ? (size_t)n : 0 };
}

static int truncated(const char *where, int i, struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s %d is truncated, or its length is wrong", where, i);
}

/* ---- metadata ---------------------------------------------------------- */

static int skip_array(struct cursor *c, struct gguf_value *v, struct err *err)
{
    v->element = (uint32_t)take_number(c, 4);
    v->n = take_number(c, 8);
    v->at = c->at;
    if (v->element >= G_TYPES || v->element == G_ARRAY)
        return err_set(err, ERR_FORMAT, "an array of unknown type %u", v->element);
    uint64_t left = (uint64_t)(c->end - c->at), size = v->element == G_TEXT ? 8 : value_size[v->element];
    if (v->n > left / size)
        return err_set(err, ERR_FORMAT, "an array of %llu elements does not fit in the %llu bytes left",
                       (unsigned long long)v->n, (unsigned long long)left);
    if (v->element != G_TEXT) {
        take(c, v->n * size);
        return 0;
    }
    for (uint64_t i = 0; i < v->n && !c->cut; i++)
        take_text(c);
    return 0;
}

static int read_value(struct cursor *c, struct gguf_value *v, struct err *err)
{
    v->type = (uint32_t)take_number(c, 4);
    v->n = 1;
    v->at = c->at;
    if (v->type >= G_TYPES)
        return err_set(err, ERR_FORMAT, "unknown type %u", v->type);
    if (v->type == G_ARRAY) {
        if (skip_array(c, v, err))
            return err->code;
    } else if (v->type == G_TEXT)
        take_text(c);
    else
        take(c, value_size[v->type]);
    v->end = c->at;
    return 0;
}

/* Adds a name, which must be new and contain no NUL. */
static int add_name(struct map *names, struct text_view name, const char *what, struct err *err)
{
    bool added;

    if (memchr(name.at, '\0', name.n))
        return err_set(err, ERR_FORMAT, "the name of a %s contains a NUL", what);
    if (map_add(names, name.at, name.n, &added) < 0)
        return err_nomem(err);
    if (!added)
        return err_set(err, ERR_FORMAT, "two %ss have the name '%.*s'", what, text_view_width(name, 100), name.at);
    return 0;
}

/* A file being read. */
struct gguf_reader {
    struct gguf *g;
    const uint8_t *start;
    struct cursor at;
    int n_values, n_tensors;
    uint64_t *offset; // (n_tensors): of the tensors' data, from the start of all data
};

static int read_values(struct gguf_reader *r, struct err *err)
{
    struct gguf *g = r->g;

    for (; g->n_values < r->n_values; g->n_values++) {
        struct text_view key = take_text(&r->at);
        if (r->at.cut)
            return truncated("key", g->n_values, err);
        if (add_name(&g->keys, key, "key", err))
            return err->code;
        if (read_value(&r->at, &g->value[g->n_values], err))
            return err_wrap(err, "key '%s'", g->keys.at[g->n_values].key);
        if (r->at.cut)
            return truncated("the value of key", g->n_values, err);
    }
    return 0;
}

/* ---- tensors ----------------------------------------------------------- */

static int find_type(uint32_t id, enum weight_type *type, struct err *err)
{
    const char *name = NULL;

    for (size_t i = 0; i < sizeof(tensor_types) / sizeof(*tensor_types); i++) {
        if (tensor_types[i].id != id)
            continue;
        name = tensor_types[i].name;
        *type = tensor_types[i].type;
        if (*type != WEIGHT_TYPES)
            return 0;
    }
    if (name)
        return err_set(err, ERR_FORMAT, "its type %s is not supported", name);
    return err_set(err, ERR_FORMAT, "its type %u is not supported", id);
}

/* Sets t->bytes. A row must be whole blocks, and the size must fit 64 bits. */
static int tensor_bytes(struct tensor *t, struct err *err)
{
    uint64_t elements = 1;
    int block = weight_block(t->type);

    if (t->dim[t->n_dims - 1] % block != 0)
        return err_set(err, ERR_FORMAT, "its rows of %lld elements are not whole %s blocks",
                       (long long)t->dim[t->n_dims - 1], weight_type_name(t->type));
    for (int i = 0; i < t->n_dims; i++)
        if (__builtin_mul_overflow(elements, (uint64_t)t->dim[i], &elements))
            return err_set(err, ERR_FORMAT, "its shape overflows");
    if (__builtin_mul_overflow(elements / (uint64_t)block, weight_block_bytes(t->type), &t->bytes))
        return err_set(err, ERR_FORMAT, "its shape overflows");
    return 0;
}

/* One entry of the table, after its name. */
static int read_tensor(struct cursor *c, struct tensor *t, uint64_t *offset, struct err *err)
{
    uint64_t n_dims = take_number(c, 4);

    if (n_dims < 1 || n_dims > TENSOR_DIMS)
        return err_set(err, ERR_FORMAT, "it has %llu dimensions, not 1 to %d", (unsigned long long)n_dims, TENSOR_DIMS);
    t->n_dims = (int)n_dims;
    for (int i = t->n_dims - 1; i >= 0; i--) {
        uint64_t dim = take_number(c, 8);
        if (!c->cut && (dim < 1 || dim > INT32_MAX))
            return err_set(err, ERR_FORMAT, "it has a dimension of %llu", (unsigned long long)dim);
        t->dim[i] = (int64_t)dim;
    }
    uint32_t type = (uint32_t)take_number(c, 4);
    *offset = take_number(c, 8);
    if (c->cut)
        return err_set(err, ERR_FORMAT, "truncated");
    if (find_type(type, &t->type, err))
        return err->code;
    return tensor_bytes(t, err);
}

static int read_tensors(struct gguf_reader *r, struct err *err)
{
    struct gguf *g = r->g;

    for (; g->n_tensors < r->n_tensors; g->n_tensors++) {
        struct tensor *t = &g->tensor[g->n_tensors];
        struct text_view name = take_text(&r->at);
        if (r->at.cut)
            return truncated("the table's tensor", g->n_tensors, err);
        if (add_name(&g->names, name, "tensor", err))
            return err->code;
        t->name = g->names.at[g->n_tensors].key;
        if (read_tensor(&r->at, t, &r->offset[g->n_tensors], err))
            return err_wrap(err, "tensor '%s'", t->name);
    }
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct tensor *x = *(const struct tensor *const *)a, *y = *(const struct tensor *const *)b;

    return ((const char *)x->at > (const char *)y->at) - ((const char *)x->at < (const char *)y->at);
}

static int check_overlap(const struct gguf *g, struct err *err)
{
    const struct tensor **order = malloc(((size_t)g->n_tensors + 1) * sizeof(*order));
    int code = 0;

    if (!order)
        return err_nomem(err);
    for (int i = 0; i < g->n_tensors; i++)
        order[i] = &g->tensor[i];
    qsort(order, (size_t)g->n_tensors, sizeof(*order), by_place);
    for (int i = 1; i < g->n_tensors && !code; i++)
        if ((const char *)order[i - 1]->at + order[i - 1]->bytes > (const char *)order[i]->at)
            code = err_set(err, ERR_FORMAT, "tensors '%s' and '%s' overlap", order[i - 1]->name, order[i]->name);
    free(order);
    return code;
}

/* Turns offsets into addresses; the data begin at the cursor. */
static int place_tensors(struct gguf_reader *r, uint64_t alignment, struct err *err)
{
    uint64_t left = (uint64_t)(r->at.end - r->at.at);

    for (int i = 0; i < r->n_tensors; i++) {
        struct tensor *t = &r->g->tensor[i];
        uint64_t offset = r->offset[i];
        if (offset % alignment != 0)
            return err_set(err, ERR_FORMAT, "tensor '%s': offset %llu is not a multiple of %llu", t->name,
                           (unsigned long long)offset, (unsigned long long)alignment);
        if (offset > left || t->bytes > left - offset)
            return err_set(err, ERR_FORMAT,
                           "truncated: tensor '%s' (%llu bytes at %llu) is outside the %llu bytes of data", t->name,
                           (unsigned long long)t->bytes, (unsigned long long)offset, (unsigned long long)left);
        t->at = r->at.at + offset;
    }
    return check_overlap(r->g, err);
}

/* ---- the whole --------------------------------------------------------- */

static int read_body(struct gguf_reader *r, struct err *err)
{
    enum { ALIGNMENT = 32, ALIGNMENT_MAX = 1 << 20 };
    int64_t alignment = ALIGNMENT;

    if (read_values(r, err) || read_tensors(r, err) || gguf_may_int(r->g, "general.alignment", &alignment, err))
        return err->code;
    if (alignment < 1 || alignment > ALIGNMENT_MAX || (alignment & (alignment - 1)) != 0)
        return err_set(err, ERR_FORMAT, "an alignment of %lld is not a power of two up to %d", (long long)alignment,
                       ALIGNMENT_MAX);
    uint64_t past = (uint64_t)(r->at.at - r->start) % (uint64_t)alignment;
    if (past != 0 && r->n_tensors > 0 && !take(&r->at, (uint64_t)alignment - past))
        return err_set(err, ERR_FORMAT, "truncated before the tensors' data");
    return place_tensors(r, (uint64_t)alignment, err);
}

/* Reads the header. A tensor's entry takes at least 32 bytes and a key's 13, so the size of the file bounds the counts
 * before anything is allocated. */
static int read_header(struct gguf_reader *r, size_t n, struct err *err)
{
    enum { TENSOR_BYTES_MIN = 32, KEY_BYTES_MIN = 13 };

    take(&r->at, 4);
    uint64_t version = take_number(&r->at, 4), n_tensors = take_number(&r->at, 8), n_values = take_number(&r->at, 8);
    if (version != 2 && version != 3)
        return err_set(err, ERR_FORMAT, "GGUF version %llu is unknown (2 and 3 are known)",
                       (unsigned long long)version);
    if (n_tensors > n / TENSOR_BYTES_MIN || n_values > n / KEY_BYTES_MIN || n_tensors > INT_MAX / 2 ||
        n_values > INT_MAX / 2)
        return err_set(err, ERR_FORMAT, "GGUF: %llu tensors and %llu keys do not fit in %zu bytes",
                       (unsigned long long)n_tensors, (unsigned long long)n_values, n);
    r->n_tensors = (int)n_tensors;
    r->n_values = (int)n_values;
    return 0;
}

/* Up to the values, or the whole. */
static int parse(struct gguf *g, const void *bytes, size_t n, int (*body)(struct gguf_reader *r, struct err *err),
                 struct err *err)
{
    struct gguf_reader r = { .g = g, .start = bytes, .at = { bytes, (const uint8_t *)bytes + n, false } };

    *g = (struct gguf){ 0 };
    if (n < 24 || memcmp(bytes, "GGUF", 4) != 0)
        return err_set(err, ERR_FORMAT, "not a GGUF file");
    if (read_header(&r, n, err))
        return err->code;
    g->value = calloc((size_t)r.n_values + 1, sizeof(*g->value));
    g->tensor = calloc((size_t)r.n_tensors + 1, sizeof(*g->tensor));
    r.offset = calloc((size_t)r.n_tensors + 1, sizeof(*r.offset));
    int code = g->value && g->tensor && r.offset ? body(&r, err) : err_nomem(err);
    free(r.offset);
    if (code) {
        gguf_release(g);
        err_wrap(err, "GGUF");
    }
    return code;
}

int gguf_parse(struct gguf *g, const void *bytes, size_t n, struct err *err)
{
    return parse(g, bytes, n, read_body, err);
}

int gguf_parse_keys(struct gguf *g, const void *bytes, size_t n, struct err *err)
{
    return parse(g, bytes, n, read_values, err);
}

void gguf_release(struct gguf *g)
{
    map_release(&g->keys);
    map_release(&g->names);
    free(g->value);
    free(g->tensor);
    *g = (struct gguf){ 0 };
}

/* ---- values ------------------------------------------------------------ */

static const struct gguf_value *find(const struct gguf *g, const char *key)
{
    int i = map_find(&g->keys, key, strlen(key));

    return i < 0 ? NULL : &g->value[i];
}

bool gguf_has(const struct gguf *g, const char *key)
{
    return find(g, key) != NULL;
}

static bool is_int(uint32_t type)
{
    return type < G_TYPES && type != G_F32 && type != G_F64 && type != G_TEXT && type != G_ARRAY;
}

/* An unsigned number above INT64_MAX becomes negative, which no caller accepts. */
static int64_t int_at(const uint8_t *p, uint32_t type)
{
    uint64_t v = little(p, value_size[type]);

    switch (type) {
    case G_I8: return (int8_t)v;
    case G_I16: return (int16_t)v;
    case G_I32: return (int32_t)v;
    default: return (int64_t)v;
    }
}

static int wrong_value(const char *key, const struct gguf_value *v, const char *what, struct err *err)
{
    if (!v)
        return err_set(err, ERR_FORMAT, "key '%s' is missing", key);
    return err_set(err, ERR_FORMAT, "key '%s' is not %s", key, what);
}

int gguf_want_int(const struct gguf *g, const char *key, int64_t *out, struct err *err)
{
    const struct gguf_value *v = find(g, key);

    if (!v || !is_int(v->type))
        return wrong_value(key, v, "an integer", err);
    *out = int_at(v->at, v->type);
    return 0;
}

int gguf_want_real(const struct gguf *g, const char *key, double *out, struct err *err)
{
    const struct gguf_value *v = find(g, key);

    if (v && v->type == G_F32) {
        uint32_t bits = (uint32_t)little(v->at, 4);
        float f;
        memcpy(&f, &bits, sizeof(f));
        *out = (double)f;
    } else if (v && v->type == G_F64) {
        uint64_t bits = little(v->at, 8);
        memcpy(out, &bits, sizeof(*out));
    } else if (v && is_int(v->type)) {
        *out = (double)int_at(v->at, v->type);
    } else {
        return wrong_value(key, v, "a number", err);
    }
    return 0;
}

int gguf_want_text(const struct gguf *g, const char *key, struct text_view *out, struct err *err)
{
    const struct gguf_value *v = find(g, key);

    if (!v || v->type != G_TEXT)
        return wrong_value(key, v, "a text", err);
    struct cursor c = { v->at, v->end, false };
    *out = take_text(&c);
    return 0;
}

int gguf_may_int(const struct gguf *g, const char *key, int64_t *out, struct err *err)
{
    return gguf_has(g, key) ? gguf_want_int(g, key, out, err) : 0;
}

int gguf_may_real(const struct gguf *g, const char *key, double *out, struct err *err)
{
    return gguf_has(g, key) ? gguf_want_real(g, key, out, err) : 0;
}

int gguf_may_text(const struct gguf *g, const char *key, struct text_view *out, struct err *err)
{
    return gguf_has(g, key) ? gguf_want_text(g, key, out, err) : 0;
}

int gguf_want_texts(const struct gguf *g, const char *key, struct gguf_array *out, struct err *err)
{
    const struct gguf_value *v = find(g, key);

    if (!v || v->type != G_ARRAY || v->element != G_TEXT || v->n > INT_MAX / 2)
        return wrong_value(key, v, "an array of texts", err);
    *out = (struct gguf_array){ v->at, v->end, v->element, (int)v->n };
    return 0;
}

int gguf_want_ints(const struct gguf *g, const char *key, struct gguf_array *out, struct err *err)
{
    const struct gguf_value *v = find(g, key);

    if (!v || v->type != G_ARRAY || !is_int(v->element) || v->n > INT_MAX / 2)
        return wrong_value(key, v, "an array of integers", err);
    *out = (struct gguf_array){ v->at, v->end, v->element, (int)v->n };
    return 0;
}

int gguf_want_reals(const struct gguf *g, const char *key, struct gguf_array *out, struct err *err)
{
    const struct gguf_value *v = find(g, key);

    if (!v || v->type != G_ARRAY || v->element != G_F32 || v->n > INT_MAX / 2)
        return wrong_value(key, v, "an array of 32-bit reals", err);
    *out = (struct gguf_array){ v->at, v->end, v->element, (int)v->n };
    return 0;
}

struct text_view gguf_next_text(struct gguf_array *a)
{
    struct cursor c = { a->at, a->end, false };
    struct text_view text = take_text(&c);

    a->at = c.at;
    return text;
}

int64_t gguf_next_int(struct gguf_array *a)
{
    int64_t v = int_at(a->at, a->element);

    a->at += value_size[a->element];
    return v;
}

float gguf_next_real(struct gguf_array *a)
{
    float v;

    memcpy(&v, a->at, sizeof(v));
    a->at += sizeof(v);
    return v;
}

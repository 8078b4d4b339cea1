/* hf_packed.c - quantised matrices of a Hugging Face folder: what config.json says about them, and the tensors that
 * make up each. The names and types of tensors tell the layout, config.json what they leave open.
 *
 * To read another layout: its row in layouts[], how the rest is found in a function read_*(), the arithmetic in
 * packed.c.
 */
#include "base/map.h"
#include "engine/model/model_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- config.json --------------------------------------------------------- */

#define TYPE(type) (1u << (type))

static const struct {
    const char *name;
    unsigned types; // that its folders may have; NVFP4: or MXFP4
} methods[] = {
    { "fp8", TYPE(WEIGHT_FP8) },
    { "fbgemm_fp8", TYPE(WEIGHT_FP8) },
    { "modelopt", TYPE(WEIGHT_FP8) | TYPE(WEIGHT_NVFP4) },
    { "compressed-tensors", TYPE(WEIGHT_FP8) | TYPE(WEIGHT_INT8) | TYPE(WEIGHT_INT) | TYPE(WEIGHT_NVFP4) },
    { "quark", TYPE(WEIGHT_FP8) | TYPE(WEIGHT_INT8) | TYPE(WEIGHT_NVFP4) },
    { "mxfp4", TYPE(WEIGHT_NVFP4) },
    { "gptq", TYPE(WEIGHT_GPTQ) },
    { "awq", TYPE(WEIGHT_AWQ) },
};

/* Fields that may name a layout or an arithmetic that this engine does not read, with the texts that it does. */
static const struct {
    const char *name, *known[2];
} plain_texts[] = {
    { "fmt", { "e4m3", "float8_e4m3fn" } },
    { "version", { "gemm", "exllama" } }, // AWQ: exllama reads the layout of gemm
    { "checkpoint_format", { "gptq", "gptq_v2" } },
};

static int check_texts(const struct json *c, struct err *err)
{
    for (size_t i = 0; i < sizeof(plain_texts) / sizeof(*plain_texts); i++) {
        const char *text = json_text(json_get(c, plain_texts[i].name));
        if (text && strcasecmp(text, plain_texts[i].known[0]) != 0 && strcasecmp(text, plain_texts[i].known[1]) != 0)
            return err_set(err, ERR_FORMAT, "field '%s' is '%.64s', which is not supported", plain_texts[i].name, text);
    }
    if (json_first(json_get(c, "transform_config")))
        return err_set(err, ERR_FORMAT, "field 'transform_config' has a value that is not supported");
    return 0;
}

/* Two numbers: a block of FP8. */
static int read_block(const struct json *block, struct quant *q, struct err *err)
{
    int64_t n[2];

    if (!block || json_is_null(block))
        return 0;
    for (int i = 0; i < 2; i++)
        if (json_to_int(json_at(block, i), "weight_block_size", &n[i], err) || n[i] < 1 || n[i] > INT_MAX)
            return err_set(err, ERR_FORMAT, "the block of its scales is not two counts");
    q->block_rows = n[0];
    q->block_cols = n[1];
    return 0;
}

/* The first field of these names that is a number. */
static int read_count(const struct json *c, const char *const name[2], int64_t *out, struct err *err)
{
    *out = 0;
    for (int i = 0; i < 2; i++)
        if (json_may_int(c, name[i], out, err))
            return err->code;
    return 0;
}

static int read_sizes(const struct json *c, struct quant *q, struct err *err)
{
    if (read_count(c, (const char *const[]){ "bits", "w_bit" }, &q->bits, err) ||
        read_count(c, (const char *const[]){ "group_size", "q_group_size" }, &q->group, err))
        return err->code;
    return read_block(json_get(c, "weight_block_size"), q, err);
}

/* compressed-tensors: the sizes of weights in all groups of modules; what differs between them is not asked for. */
static int read_groups(const struct json *groups, struct quant *q, struct err *err)
{
    for (const struct json *g = json_first(groups), *first = g; g; g = json_next(g)) {
        const struct json *w = json_get(g, "weights"), *block = json_get(w, "block_structure");
        int64_t bits = 0, group = 0;
        if (json_may_int(w, "num_bits", &bits, err) || json_may_int(w, "group_size", &group, err) ||
            (json_is_array(block) && read_block(block, q, err)))
            return err->code;
        q->bits = g == first || bits == q->bits ? bits : 0;
        q->group = g == first || group == q->group ? group : 0;
    }
    return 0;
}

int quant_read(struct quant *q, const struct json *c, const char *method, struct err *err)
{
    const char *format = "gptq";

    *q = (struct quant){ .block_rows = 128, .block_cols = 128 };
    if (method ? json_may_text(c, "quant_method", &method, err) : json_want_text(c, "quant_method", &method, err))
        return err->code;
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (strcmp(method, methods[i].name) == 0)
            q->types = methods[i].types;
    if (!q->types)
        return err_set(err, ERR_FORMAT, "weights quantised by '%.64s' are not supported", method);
    if (check_texts(c, err) || json_may_text(c, "checkpoint_format", &format, err) || read_sizes(c, q, err) ||
        read_groups(json_get(c, "config_groups"), q, err))
        return err->code;
    q->gptq_zero = strcasecmp(format, "gptq") == 0;
    if (json_first(json_get(c, "dynamic"))) // GPTQ: other sizes for some modules
        q->bits = q->group = 0;
    return 0;
}

/* ---- parts ---------------------------------------------------------------- */

/* A matrix being put together from its parts, which are called STEM and an end. */
struct matrix {
    struct model *model;
    struct map names; // of all tensors
    const struct st_tensor **tensor, *codes;
    int stem; // length of the name of `codes` before its end
    struct packed *out;
};

/* NULL: there is none. */
static const struct st_tensor *may_part(struct matrix *x, const char *end)
{
    char name[MODEL_TENSOR_NAME];
    int n = snprintf(name, sizeof(name), "%.*s%s", x->stem, x->codes->name, end);
    int i = n < (int)sizeof(name) ? map_find(&x->names, name, (size_t)n) : -1;

    return i < 0 || map_add(&x->model->parts, name, (size_t)n, NULL) < 0 ? NULL : x->tensor[i];
}

static const struct st_tensor *want_part(struct matrix *x, const char *end, struct err *err)
{
    const struct st_tensor *t = may_part(x, end);

    if (!t)
        err_set(err, ERR_FORMAT, "tensor '%s' has no '%.*s%s'", x->codes->name, x->stem, x->codes->name, end);
    return t;
}

static int64_t numbers(const struct st_tensor *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->n_dims; i++)
        n *= t->dim[i];
    return n;
}

static int check_words(const struct st_tensor *t, int64_t rows, int64_t cols, struct err *err)
{
    if (t->type == ST_I32 && t->n_dims == 2 && t->dim[0] == rows && t->dim[1] == cols)
        return 0;
    return err_set(err, ERR_FORMAT, "tensor '%s' has %lld numbers of type %s, not %lld x %lld of type I32", t->name,
                   (long long)numbers(t), st_type_name(t->type), (long long)rows, (long long)cols);
}

static int64_t ceiling(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

static int set_size(struct matrix *x, int64_t rows, int64_t cols, struct err *err)
{
    if (rows < 1 || cols < 1 || rows > INT_MAX || cols > INT_MAX)
        return err_set(err, ERR_FORMAT, "tensor '%s' is of a matrix of %lld x %lld, which is not supported",
                       x->codes->name, (long long)rows, (long long)cols);
    x->out->rows = rows;
    x->out->cols = cols;
    return 0;
}

static int set_bits(struct matrix *x, int64_t bits, struct err *err)
{
    const int64_t said = x->model->quant.bits;

    if (bits != 4 && (bits != 8 || x->out->type == WEIGHT_AWQ))
        return err_set(err, ERR_FORMAT, "tensor '%s' has codes of %lld bits, which is not supported", x->codes->name,
                       (long long)bits);
    if (said > 0 && said != bits)
        return err_set(err, ERR_FORMAT, "tensor '%s' has codes of %lld bits, but config.json says %lld", x->codes->name,
                       (long long)bits, (long long)said);
    x->out->bits = (int)bits;
    return 0;
}

/* Columns that share a scale, if there are so many groups. */
static int64_t group_cols(const struct matrix *x, int64_t groups)
{
    const int64_t said = x->model->quant.group;

    return said > 0 ? said : said < 0 || groups < 1 ? x->out->cols : ceiling(x->out->cols, groups);
}

/* A scale for each block, (rows, groups), or with `transposed` (groups, rows). */
static int set_scales(struct packed *p, const struct st_tensor *t, bool transposed, struct err *err)
{
    int64_t rows = ceiling(p->rows, p->block_rows), groups = ceiling(p->cols, p->block_cols);
    int64_t first = transposed ? groups : rows, second = transposed ? rows : groups;
    bool is_real = t->type == ST_F32 || t->type == ST_F16 || t->type == ST_BF16;

    if (!is_real && p->type != WEIGHT_MXFP4_ROWS && p->type != WEIGHT_NVFP4)
        return err_set(err, ERR_FORMAT, "tensor '%s' has scales of type %s, which is not supported", t->name,
                       st_type_name(t->type));
    if (numbers(t) != first * second || (first > 1 && second > 1 && t->dim[t->n_dims - 1] != second))
        return err_set(err, ERR_FORMAT, "tensor '%s' has %lld scales, not %lld x %lld for blocks of %lld x %lld",
                       t->name, (long long)numbers(t), (long long)first, (long long)second, (long long)p->block_rows,
                       (long long)p->block_cols);
    p->n_groups = groups;
    p->scale = t->at;
    p->scale_type = t->type;
    p->scale_row = transposed ? 1 : groups;
    p->scale_group = transposed ? rows : 1;
    return 0;
}

/* One scale in all, one for each row, or one for each block of this size. */
static int set_free_scales(struct packed *p, const struct st_tensor *t, int64_t rows, int64_t cols, struct err *err)
{
    bool one = numbers(t) == 1, each_row = numbers(t) == p->rows && t->dim[0] == p->rows;

    p->block_rows = one ? p->rows : each_row ? 1 : rows;
    p->block_cols = one || each_row ? p->cols : cols;
    return set_scales(p, t, false, err);
}

/* The group of each column. It is left out where it says what is so without it. */
static int set_groups(struct packed *p, const struct st_tensor *t, struct err *err)
{
    bool plain = true;

    if (!t)
        return 0;
    if (t->type != ST_I32 || numbers(t) != p->cols || p->n_groups > PACKED_GROUPS)
        return err_set(err, ERR_FORMAT, "tensor '%s' has %lld numbers of type %s, not %lld of type I32", t->name,
                       (long long)numbers(t), st_type_name(t->type), (long long)p->cols);
    for (int64_t c = 0; c < p->cols; c++) {
        int32_t group;
        memcpy(&group, (const char *)t->at + 4 * c, sizeof(group));
        if (c == 0 && group == -1) // compressed-tensors: none
            return 0;
        if (group < 0 || group >= p->n_groups)
            return err_set(err, ERR_FORMAT, "tensor '%s' has group %d of %lld", t->name, (int)group,
                           (long long)p->n_groups);
        plain = plain && group == c / p->block_cols;
    }
    p->group = plain ? NULL : t->at;
    return 0;
}

/* ---- layouts --------------------------------------------------------------- */

/* FP8 and INT8: a byte for each number. */
static int read_bytes(struct matrix *x, struct err *err)
{
    const struct quant *q = &x->model->quant;
    const struct st_tensor *scale = may_part(x, ".weight_scale_inv");

    x->out->bits = 8;
    if (!scale)
        scale = want_part(x, ".weight_scale", err);
    if (!scale || set_size(x, x->codes->dim[0], x->codes->dim[1], err))
        return err->code;
    return set_free_scales(x->out, scale, q->block_rows, q->block_cols, err);
}

/* GPTQ and AWQ: the same parts, in words along columns or along rows. The bits follow from those of the zeros. */
static int read_qweight(struct matrix *x, struct err *err)
{
    struct packed *p = x->out;
    const bool awq = p->type == WEIGHT_AWQ;
    const struct st_tensor *scale = want_part(x, ".scales", err), *zero = scale ? want_part(x, ".qzeros", err) : NULL;

    if (!zero || set_size(x, scale->dim[1], x->codes->dim[0], err) || set_bits(x, zero->dim[1] * 32 / p->rows, err))
        return err->code;
    const int64_t per_word = 32 / p->bits;
    if (set_size(x, p->rows, awq ? p->cols / 8 * 8 : p->cols * per_word, err) || // packed.c takes 8 columns at once
        check_words(x->codes, awq ? p->cols : p->cols / per_word, awq ? p->rows / per_word : p->rows, err))
        return err->code;
    p->block_rows = 1;
    p->block_cols = group_cols(x, scale->dim[0]);
    if (set_scales(p, scale, true, err) || check_words(zero, p->n_groups, p->rows / per_word, err))
        return err->code;
    p->zeros = zero->at;
    p->zero = !awq && x->model->quant.gptq_zero;
    return set_groups(p, may_part(x, ".g_idx"), err);
}

/* compressed-tensors' integers in words. */
static int read_words(struct matrix *x, struct err *err)
{
    struct packed *p = x->out;
    const struct st_tensor *scale = want_part(x, ".weight_scale", err), *zero = may_part(x, ".weight_zero_point"),
                           *shape = scale ? want_part(x, ".weight_shape", err) : NULL;
    int64_t size[2] = { 0 };

    if (!shape)
        return err->code;
    if (shape->type == ST_I64 && shape->bytes == sizeof(size))
        memcpy(size, shape->at, sizeof(size));
    if (set_size(x, size[0], size[1], err) || set_bits(x, x->codes->dim[1] * 32 / p->cols, err) ||
        check_words(x->codes, p->rows, p->cols * p->bits / 32, err) ||
        set_free_scales(p, scale, 1, group_cols(x, scale->dim[1]), err) ||
        (zero && check_words(zero, ceiling(p->rows * p->bits, 32), p->n_groups, err)))
        return err->code;
    p->zeros = zero ? zero->at : NULL;
    p->zero = zero ? 0 : 1 << (p->bits - 1);
    return set_groups(p, may_part(x, ".weight_g_idx"), err);
}

/* NVFP4's scale of the whole matrix: compressed-tensors divides by it, modelopt multiplies. */
static int read_matrix_scale(struct matrix *x, struct err *err)
{
    const struct st_tensor *divisor = may_part(x, ".weight_global_scale");
    const struct st_tensor *t = divisor ? divisor : want_part(x, ".weight_scale_2", err);

    if (!t)
        return err->code;
    if (t->type != ST_F32 || numbers(t) != 1)
        return err_set(err, ERR_FORMAT, "tensor '%s' is not one number of type F32", t->name);
    x->out->factor = x->out->divisor = 1;
    memcpy(divisor ? &x->out->divisor : &x->out->factor, t->at, sizeof(float));
    return 0;
}

/* NVFP4 or MXFP4, as their scales tell. gpt-oss has blocks of 16 bytes as one more dimension. */
static int read_fp4(struct matrix *x, struct err *err)
{
    struct packed *p = x->out;
    const struct st_tensor *t = x->codes;
    const bool blocks = strcmp(t->name + x->stem, "_blocks") == 0;
    const struct st_tensor *scale = want_part(x, blocks ? "_scales" : ".weight_scale", err);
    const int64_t cols = blocks && t->dim[t->n_dims - 1] == 16 ? t->dim[t->n_dims - 2] * 32 : t->dim[1] * 2;

    if (!scale || set_size(x, cols > 0 ? numbers(t) * 2 / cols : 0, cols, err))
        return err->code;
    p->type = scale->type == ST_F8_E4M3 ? WEIGHT_NVFP4 : WEIGHT_MXFP4_ROWS;
    p->bits = 4;
    p->block_rows = 1;
    p->block_cols = p->type == WEIGHT_NVFP4 ? 16 : 32;
    if (p->type == WEIGHT_MXFP4_ROWS && scale->type != ST_U8 && scale->type != ST_F8_E8M0)
        return err_set(err, ERR_FORMAT, "tensor '%s' has scales of type %s, which is not supported", scale->name,
                       st_type_name(scale->type));
    if (p->type == WEIGHT_NVFP4 && read_matrix_scale(x, err))
        return err->code;
    return set_scales(p, scale, false, err);
}

static const struct layout {
    enum weight_type type;
    enum st_type codes;
    const char *end; // of their name
    int n_dims[2];   // fewest, most
    int (*read)(struct matrix *x, struct err *err);
} layouts[] = {
    { WEIGHT_FP8, ST_F8_E4M3, ".weight", { 2, 2 }, read_bytes },
    { WEIGHT_INT8, ST_I8, ".weight", { 2, 2 }, read_bytes },
    { WEIGHT_GPTQ, ST_I32, ".qweight", { 2, 2 }, read_qweight },
    { WEIGHT_AWQ, ST_I32, ".qweight", { 2, 2 }, read_qweight },
    { WEIGHT_INT, ST_I32, ".weight_packed", { 2, 2 }, read_words },
    { WEIGHT_NVFP4, ST_U8, ".weight_packed", { 2, 2 }, read_fp4 },
    { WEIGHT_NVFP4, ST_U8, ".weight", { 2, 2 }, read_fp4 },
    { WEIGHT_NVFP4, ST_U8, "_blocks", { 3, 4 }, read_fp4 },
};

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), n_end = strlen(end);

    return n > n_end && strcmp(name + n - n_end, end) == 0;
}

/* The layout whose codes a tensor is; NULL: none. */
static const struct layout *layout_of(const struct st_tensor *t, const struct quant *q)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
        if (layouts[i].codes == t->type && q->types & TYPE(layouts[i].type) && ends_with(t->name, layouts[i].end) &&
            t->n_dims >= layouts[i].n_dims[0] && t->n_dims <= layouts[i].n_dims[1])
            return &layouts[i];
    return NULL;
}

static int add_named(struct model *m, struct tensor t, const char *name, struct err *err)
{
    if (model_add(m, name, &t, err))
        return err->code;
    m->tensor[m->n_tensors - 1].name = m->names.at[m->n_tensors - 1].key;
    return 0;
}

/* gpt-oss' gate and up, whose rows are by turns in one tensor, as two. */
static int add_by_turns(struct model *m, struct tensor t, const char *name, struct err *err)
{
    static const char *const parts[] = { "gate", "up" };
    const int before = (int)(strstr(name, "gate_up_proj") - name);
    const struct packed both = *t.packed;
    char own[MODEL_TENSOR_NAME];

    t.dim[1] /= 2;
    t.bytes /= 2;
    for (int i = 0; i < 2; i++) {
        struct packed *p = &m->packed[m->n_tensors];
        *p = both;
        p->every = 2;
        p->first = i;
        t.packed = p;
        snprintf(own, sizeof(own), "%.*s%s_proj.weight", before, name, parts[i]);
        if (add_named(m, t, own, err))
            return err->code;
    }
    return 0;
}

static int add_matrix(struct matrix *x, const struct layout *layout, struct err *err)
{
    struct model *m = x->model;
    struct packed *p = x->out = &m->packed[m->n_tensors];
    char name[MODEL_TENSOR_NAME];

    *p = (struct packed){ .type = layout->type, .codes = x->codes->at };
    x->stem = (int)(strlen(x->codes->name) - strlen(layout->end));
    snprintf(name, sizeof(name), "%.*s.weight", x->stem < 200 ? x->stem : 200, x->codes->name);
    if (map_add(&m->parts, x->codes->name, strlen(x->codes->name), NULL) < 0)
        return err_nomem(err);
    if (layout->read(x, err))
        return err->code;
    struct tensor t = { .type = p->type, .n_dims = 2, .dim = { p->rows, p->cols }, .at = p->codes, .packed = p };
    if (x->codes->n_dims == 4) // blocks of experts
        t = (struct tensor){ .type = p->type,
                             .n_dims = 3,
                             .dim = { x->codes->dim[0], x->codes->dim[1], p->cols },
                             .at = p->codes,
                             .packed = p };
    t.bytes = x->codes->bytes;
    if (m->family && m->family->together && t.n_dims == 3 && t.dim[1] % 2 == 0 && strstr(name, ".gate_up_proj.weight"))
        return add_by_turns(m, t, name, err);
    return add_named(m, t, name, err);
}

/* Tensors that scale activations or the cache of an engine, which here are not quantised. */
static bool is_ignored(const char *name)
{
    static const char *const ends[] = {
        ".input_scale",  ".input_global_scale", ".input_zero_point", ".input_scale_ub", ".activation_scale",
        ".output_scale", ".prob_scale",         ".q_scale",          ".k_scale",        ".v_scale",
        ".kv_scale"
    };

    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}

static int add_all(struct matrix *x, struct err *err)
{
    for (int i = 0; i < x->names.n; i++) {
        const struct layout *layout = layout_of(x->tensor[i], &x->model->quant);
        x->codes = x->tensor[i];
        if (layout
                ? add_matrix(x, layout, err) != 0
                : is_ignored(x->codes->name) && map_add(&x->model->parts, x->codes->name, x->names.at[i].n, NULL) < 0)
            return layout ? err->code : err_nomem(err);
    }
    return 0;
}

/* All tensors of all shards by name; of two with one name the first, and model_add() refuses the other. */
static int list_all(struct matrix *x, size_t n, struct err *err)
{
    struct model *m = x->model;
    bool added;

    x->tensor = calloc(n + 1, sizeof(*x->tensor));
    if (!x->tensor)
        return err_nomem(err);
    for (int s = 0; s < m->n_shards; s++)
        for (int i = 0; i < m->shard[s].n; i++) {
            const struct st_tensor *t = &m->shard[s].tensor[i];
            if (map_add(&x->names, t->name, strlen(t->name), &added) < 0)
                return err_nomem(err);
            if (!added)
                return err_set(err, ERR_FORMAT, "two tensors have the name '%s'", t->name);
            x->tensor[x->names.n - 1] = t;
        }
    return 0;
}

int hf_packed_add(struct model *m, size_t n, struct err *err)
{
    struct matrix x = { .model = m };
    int code = list_all(&x, n, err);

    if (!code)
        code = add_all(&x, err);
    map_release(&x.names);
    free(x.tensor);
    return code ? err_wrap(err, "'%s'", m->path) : 0;
}

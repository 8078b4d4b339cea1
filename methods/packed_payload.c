/* packed_payload.c - writes and checks payloads by one layout: a variant is written tensor by tensor in its order, and
 * a file is compared with it tensor by tensor. The lengths of a layer's heads follow from the config; where they depend
 * on the data, they are read from the file.
 *
 * The header holds checksums of the bytes after it, so it is written twice, the first time with zeros.
 */
#include "methods/packed_payload.h"

#include "base/half.h"
#include "base/unconst.h"
#include "methods/variant_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- layout ------------------------------------------------------------ */

static const enum st_type type_of[] = {
    [DTYPE_F32] = ST_F32, [DTYPE_F16] = ST_F16, [DTYPE_BF16] = ST_BF16, [DTYPE_I32] = ST_I32, [DTYPE_U8] = ST_U8,
};

static const char positions[] = "positions";

/* The sum of all heads' tokens. */
static int64_t sum_of(const int *n, int n_heads)
{
    int64_t sum = 0;

    for (int g = 0; g < n_heads; g++)
        sum += n[g];
    return sum;
}

int packed_payload_layout(const struct config *config, const struct kv_shape *shape, int n_tokens,
                          const struct layer_lengths *lengths, struct packed_part part[LAYOUT_MAX])
{
    int n = config_parts(config, shape, lengths, part), G = shape->n_kv_heads;
    int64_t kept = sum_of(lengths->n, G);

    if (kept == (int64_t)G * n_tokens || config_packer(config))
        return n;
    part[n++] = config_is_ragged(config)
                    ? (struct packed_part){ positions, DTYPE_I32, 1, { kept }, NULL, false }
                    : (struct packed_part){ positions, DTYPE_I32, 2, { G, lengths->n[0] }, NULL, false };
    return n;
}

struct st_tensor packed_payload_tensor(int layer, const struct packed_part *part, char name[TENSOR_NAME])
{
    snprintf(name, TENSOR_NAME, "layers.%d.%s", layer, part->name);
    return (struct st_tensor){
        .name = name,
        .type = type_of[part->dtype],
        .n_dims = part->n_dims,
        .dim = { part->dim[0], part->dim[1], part->dim[2] },
    };
}

/* ---- writing ----------------------------------------------------------- */

/* A tensor to be written. */
struct stored {
    int layer;
    struct packed_part part;
    const void *at; // its bytes in host memory; NULL: rows of the variant
};

struct writer {
    struct file_out out;
    const struct variant *v;
    const struct payload_key *key;
    int32_t *lengths;      // [L * G]
    struct stored *stored; // (n_tensors)
    int n_tensors;
    struct st_tensor *tensor;       // (n_tensors)
    char (*name)[TENSOR_NAME];      // (n_tensors)
    char (*checksum)[XXH3_HEX];     // (n_tensors)
    char **head_checksum;           // (n_tensors) of tensors whose heads are equally long; the others NULL
    void *bytes;                    // one tensor as stored
    float *rows;                    // one head's rows, for an f32 backend
    struct buf cache, kept, errors; // metadata texts 'cache', 'lengths' and 'errors'; empty: absent
};

static void writer_release(struct writer *w)
{
    file_abort(&w->out);
    for (int i = 0; w->head_checksum && i < w->n_tensors; i++)
        free(w->head_checksum[i]);
    free(w->head_checksum);
    free(w->lengths);
    free(w->stored);
    free(w->tensor);
    free(w->name);
    free(w->checksum);
    free(w->bytes);
    free(w->rows);
    buf_release(&w->cache);
    buf_release(&w->kept);
    buf_release(&w->errors);
}

/* Lists the tokens and the tensors of all layers. */
static void list_tensors(struct writer *w)
{
    const struct variant *v = w->v;
    size_t G = (size_t)v->shape.n_kv_heads;
    const int32_t *kept = v->kept;

    w->stored[w->n_tensors] = (struct stored){ .part = { "tokens", DTYPE_I32, 1, { v->n_tokens }, NULL, false } };
    w->stored[w->n_tensors].at = w->key->ids;
    w->tensor[w->n_tensors++] = payload_tokens(v->n_tokens);
    for (int l = 0; l < v->shape.n_layers; l++) {
        const struct layer_lengths lengths = { l, w->lengths + (size_t)l * G, variant_whole(v, l) };
        struct packed_part part[LAYOUT_MAX];
        int n = packed_payload_layout(v->config, &v->shape, v->n_tokens, &lengths, part);
        memcpy(part, v->parts + l * v->n_parts, (size_t)v->n_parts * sizeof(*part)); // with the sizes that data decided
        for (int i = 0; i < n; i++) {
            const void *at = i < v->n_parts ? v->parts[l * v->n_parts + i].at : kept; // positions come last
            w->tensor[w->n_tensors] = packed_payload_tensor(l, &part[i], w->name[w->n_tensors]);
            w->stored[w->n_tensors++] = (struct stored){ l, part[i], at };
        }
        if (kept)
            kept += sum_of(lengths.n, v->shape.n_kv_heads);
    }
}

static int alloc_tensors(struct writer *w, struct err *err)
{
    const struct variant *v = w->v;
    size_t n = 1 + (size_t)v->shape.n_layers * LAYOUT_MAX, heads = (size_t)(v->shape.n_layers * v->shape.n_kv_heads);

    w->lengths = calloc(heads, sizeof(*w->lengths));
    w->stored = calloc(n, sizeof(*w->stored));
    w->tensor = calloc(n, sizeof(*w->tensor));
    w->name = calloc(n, sizeof(*w->name));
    w->checksum = calloc(n, sizeof(*w->checksum));
    w->head_checksum = calloc(n, sizeof(*w->head_checksum));
    w->rows = malloc((size_t)v->n_tokens * (size_t)v->shape.head_dim * sizeof(float));
    return w->lengths && w->stored && w->tensor && w->name && w->checksum && w->head_checksum && w->rows
               ? 0
               : err_nomem(err);
}

/* Fills the metadata texts. The tokens that each layer keeps are recorded only where some are dropped and all heads of
 * a layer keep the same number. */
static int describe_cache(struct writer *w, struct err *err)
{
    const struct variant *v = w->v;
    int L = v->shape.n_layers, *kept = calloc((size_t)L, sizeof(*kept));
    bool all = true;

    for (int l = 0; kept && l < L; l++) {
        kept[l] = w->lengths[l * v->shape.n_kv_heads];
        all = all && kept[l] == v->n_tokens;
    }
    payload_cache_put(&w->cache, &v->shape, w->key->model);
    if (kept && !all && !config_is_ragged(v->config))
        payload_lengths_put(&w->kept, kept, L);
    free(kept);
    return !kept || buf_failed(&w->cache) || buf_failed(&w->kept) ? err_nomem(err) : 0;
}

/* Room for the checksums of a tensor's heads, as zeros. */
static int add_head_checksum(struct writer *w, int i, struct err *err)
{
    size_t n = (size_t)w->v->shape.n_kv_heads * (XXH3_HEX - 1);

    if (i == 0 || w->v->shape.n_kv_heads == 1 || config_is_ragged(w->v->config)) /* tensor 0 is the tokens */
        return 0;
    if (w->stored[i].part.dim[0] != w->v->shape.n_kv_heads) /* not head after head of the same size */
        return 0;
    w->head_checksum[i] = calloc(n + 1, 1);
    if (!w->head_checksum[i])
        return err_nomem(err);
    memset(w->head_checksum[i], '0', n);
    return 0;
}

static void sum_tensor(struct writer *w, int i, const char *at, size_t n)
{
    int G = w->v->shape.n_kv_heads;
    char hex[XXH3_HEX];

    digest_xxh3_hex(at, n, w->checksum[i]);
    for (int g = 0; w->head_checksum[i] && g < G; g++) {
        digest_xxh3_hex(at + n / (size_t)G * (size_t)g, n / (size_t)G, hex);
        memcpy(w->head_checksum[i] + g * (XXH3_HEX - 1), hex, XXH3_HEX - 1);
    }
}

static int writer_init(struct writer *w, struct err *err)
{
    const struct variant *v = w->v;
    size_t max = 1;

    if (alloc_tensors(w, err))
        return err->code;
    for (int h = 0; h < v->shape.n_layers * v->shape.n_kv_heads; h++)
        w->lengths[h] = v->rows[h].n;
    if (w->key->model && describe_cache(w, err))
        return err->code;
    if (w->key->errors)
        payload_errors_put(&w->errors, w->key->errors, v->shape.n_layers);
    if (buf_failed(&w->errors))
        return err_nomem(err);
    list_tensors(w);
    for (int i = 0; i < w->n_tensors; i++) {
        size_t bytes = packed_part_bytes(&w->stored[i].part);
        max = bytes > max ? bytes : max;
        memset(w->checksum[i], '0', XXH3_HEX - 1);
        if (add_head_checksum(w, i, err))
            return err->code;
    }
    w->bytes = malloc(max);
    return w->bytes ? 0 : err_nomem(err);
}

/* Writes the header with the checksums known so far. */
static int write_header(struct writer *w, struct err *err)
{
    const struct payload_made made = { .config = w->v->config->name,
                                       .model_digest = w->key->model_digest,
                                       .token_digest = w->key->token_digest,
                                       .n_tokens = w->v->n_tokens,
                                       .tensor = w->tensor,
                                       .checksum = w->checksum,
                                       .head_checksum = w->head_checksum,
                                       .n = w->n_tensors,
                                       .origin = { .producer = w->key->producer,
                                                   .model_name = w->key->model ? w->key->model->name : NULL,
                                                   .cache = w->cache.n ? w->cache.at : NULL,
                                                   .lengths = w->kept.n ? w->kept.at : NULL,
                                                   .errors = w->errors.n ? w->errors.at : NULL } };

    return payload_write_header(&w->out, &made, err);
}

/* The last `last` of n rows of one matrix. */
struct matrix_rows {
    const void *at;
    int n, last;
};

/* Reads the rows as BF16. */
static int store_rows(struct writer *w, uint16_t *to, const struct matrix_rows *rows, struct err *err)
{
    const struct variant *v = w->v;
    size_t K = (size_t)v->shape.head_dim, count = (size_t)rows->last * K, size = dtype_size(v->shape.dtype);
    const char *from = (const char *)rows->at + (size_t)(rows->n - rows->last) * K * size;

    if (v->shape.dtype == DTYPE_BF16)
        return v->backend->read(v->backend, to, from, count * size, err);
    if (v->backend->read(v->backend, w->rows, from, count * size, err))
        return err->code;
    for (size_t i = 0; i < count; i++)
        to[i] = bf16_from_f32(w->rows[i]);
    return 0;
}

/* Fills w->bytes with `k` or `v` of a layer: the rows that each head keeps in full. */
static int store_part(struct writer *w, const struct stored *s, struct err *err)
{
    const struct variant *v = w->v;
    bool keys = strcmp(s->part.name, "k") == 0;
    uint16_t *to = w->bytes;
    struct head_part part[HEAD_PART_MAX];

    for (int g = 0; g < v->shape.n_kv_heads; g++) {
        const struct kv_rows *head = &v->rows[s->layer * v->shape.n_kv_heads + g];
        int i = 0;
        const struct head_length length = { s->layer, head->n, variant_whole(v, s->layer) };
        parts_of_head(v->config, &v->shape, &length, part);
        while (strcmp(part[i].name, s->part.name) != 0)
            i++;
        const struct matrix_rows rows = { keys ? head->k : head->v, head->n, (int)part[i].rows };
        if (store_rows(w, to, &rows, err))
            return err->code;
        to += part[i].rows * part[i].cols;
    }
    return 0;
}

static int write_all(struct writer *w, uint64_t *bytes, struct err *err)
{
    if (write_header(w, err))
        return err->code;
    for (int i = 0; i < w->n_tensors; i++) {
        const struct stored *s = &w->stored[i];
        size_t n = packed_part_bytes(&s->part);
        if (!s->at && store_part(w, s, err))
            return err->code;
        const void *at = s->at ? s->at : w->bytes;
        sum_tensor(w, i, at, n);
        fwrite(at, 1, n, w->out.f); // file_commit checks the stream for errors
    }
    if (bytes)
        *bytes = (uint64_t)ftell(w->out.f);
    rewind(w->out.f);
    return write_header(w, err);
}

int packed_payload_write(const char *path, const struct variant *v, const struct payload_key *key, uint64_t *bytes,
                         struct err *err)
{
    struct writer w = { .v = v, .key = key };

    assert(v->parts);
    int code = writer_init(&w, err);
    if (!code)
        code = file_create(&w.out, path, err);
    if (!code)
        code = write_all(&w, bytes, err);
    if (!code)
        code = file_commit(&w.out, err);
    writer_release(&w);
    return code;
}

/* ---- reading ----------------------------------------------------------- */

static const struct st_tensor *find_part(const struct packed_payload *p, int layer, const char *part)
{
    char name[TENSOR_NAME];

    snprintf(name, sizeof(name), "layers.%d.%s", layer, part);
    return safetensors_find(&p->file.st, name);
}

/* G and K from the first layer, L from the names. */
static int read_shape(struct packed_payload *p, struct err *err)
{
    enum { WIDTH_MAX = 1 << 13 }; // products of dimensions fit in 64 bits
    const struct st_tensor *k = find_part(p, 0, "k"), *lengths = find_part(p, 0, "lengths");
    bool ragged = config_is_ragged(&p->config);
    int n_dims = ragged ? 2 : 3;
    int64_t K = k && k->n_dims == n_dims ? k->dim[n_dims - 1] : 0, G = k ? k->dim[0] : 0;

    if (ragged && (!lengths || lengths->n_dims != 1))
        return err_set(err, ERR_FORMAT, "no tensor 'layers.0.lengths' of shape [heads]");
    if (ragged)
        G = lengths->dim[0];
    if (K < 1 || K > WIDTH_MAX || G < 1 || G > PAYLOAD_HEADS_MAX)
        return err_set(err, ERR_FORMAT, "no tensor 'layers.0.k' of shape [%srows, head_dim]", ragged ? "" : "heads, ");
    p->shape = (struct kv_shape){ .n_kv_heads = (int)G, .head_dim = (int)K };
    while (find_part(p, p->shape.n_layers, "k"))
        p->shape.n_layers++;
    return config_check(&p->config, &p->shape, err) ? err->code = ERR_FORMAT : 0;
}

void packed_payload_lengths(const struct packed_payload *p, int layer, int *n)
{
    size_t G = (size_t)p->shape.n_kv_heads;

    if (config_is_ragged(&p->config)) {
        memcpy(n, find_part(p, layer, "lengths")->at, G * sizeof(*n));
        return;
    }
    for (size_t g = 0; g < G; g++)
        n[g] = config_n_keep(&p->config, &p->shape, p->file.n_tokens, layer);
}

static int check_tensor(const struct packed_payload *p, const struct st_tensor *want, struct err *err)
{
    const struct st_tensor *t = safetensors_find(&p->file.st, want->name);

    if (!t)
        return err_set(err, ERR_FORMAT, "tensor '%s' is missing", want->name);
    if (t->type != want->type)
        return err_set(err, ERR_FORMAT, "tensor '%s' is %s, not %s", want->name, st_type_name(t->type),
                       st_type_name(want->type));
    if (t->n_dims != want->n_dims || memcmp(t->dim, want->dim, (size_t)t->n_dims * sizeof(*t->dim)) != 0)
        return err_set(err, ERR_FORMAT, "the shape of tensor '%s' is not what %s makes of %d tokens", want->name,
                       p->config.name, p->file.n_tokens);
    return 0;
}

/* Checks that the heads of some layers have as many tokens as the config keeps of these layers together, or not more where
 * that is not known. */
static int check_sum(const struct packed_payload *p, int first, int n_layers, struct err *err)
{
    int64_t kept = config_share(&p->config, &p->shape, p->file.n_tokens, first).pairs, sum = 0;
    int n[PAYLOAD_HEADS_MAX];

    for (int l = first; l < first + n_layers; l++) {
        packed_payload_lengths(p, l, n);
        sum += sum_of(n, p->shape.n_kv_heads);
    }
    bool known = config_knows_rows(&p->config);
    if (known ? sum == kept : sum <= kept)
        return 0;
    if (n_layers > 1)
        err_set(err, ERR_FORMAT, "the tensors 'layers.N.lengths' add up to %lld tokens", (long long)sum);
    else
        err_set(err, ERR_FORMAT, "tensor 'layers.%d.lengths' adds up to %lld tokens", first, (long long)sum);
    return err_add(err, ", but %s keeps %s%lld", p->config.name, known ? "" : "at most ", (long long)kept);
}

/* The layers that share pairs. */
static int n_sharing(const struct packed_payload *p)
{
    return config_share(&p->config, &p->shape, p->file.n_tokens, 0).layers;
}

/* Checks the file's lengths of a layer's heads: each is from 0 to the context's tokens, and their sum is what the config
 * keeps of the layer, unless it shares with others. */
static int check_lengths(const struct packed_payload *p, int layer, struct err *err)
{
    char name[TENSOR_NAME];
    int n[PAYLOAD_HEADS_MAX], G = p->shape.n_kv_heads, T = p->file.n_tokens;
    struct st_tensor want = packed_payload_tensor(
        layer, &(struct packed_part){ .name = "lengths", .dtype = DTYPE_I32, .n_dims = 1, .dim = { G } }, name);

    if (check_tensor(p, &want, err))
        return err->code;
    packed_payload_lengths(p, layer, n);
    for (int g = 0; g < G; g++)
        if (n[g] < 0 || n[g] > T)
            return err_set(err, ERR_FORMAT, "tensor '%s' gives a head %d of %d tokens", name, n[g], T);
    return n_sharing(p) > 1 ? 0 : check_sum(p, layer, 1, err);
}

/* Checks the sizes that a file chose. */
static int check_sizes(const struct packed_payload *p, int layer, const struct packed_part *part, struct err *err)
{
    const struct config_stage *quantise = config_stage_of(&p->config, METHOD_QUANTISE);

    for (int i = 0; quantise && quantise->method->check_part && i < PART_MAX; i++)
        if (part[i].at_most && !quantise->method->check_part(part, i))
            return err_set(err, ERR_FORMAT, "the size of tensor 'layers.%d.%s' is not what its streams take", layer,
                           part[i].name);
    return 0;
}

int packed_payload_whole(const struct packed_payload *p, int layer)
{
    int n_keep = config_n_keep(&p->config, &p->shape, p->file.n_tokens, layer);

    return config_least_whole(&p->config, n_keep) < 0 ? 0 : (int)find_part(p, layer, "k")->dim[1];
}

/* Checks that the file has as many whole rows in a layer as the config may keep. */
static int check_whole(const struct packed_payload *p, int layer, struct err *err)
{
    const struct st_tensor *k = find_part(p, layer, "k");
    int n_keep = config_n_keep(&p->config, &p->shape, p->file.n_tokens, layer);
    int least = config_least_whole(&p->config, n_keep);

    if (least < 0 || (k->n_dims == 3 && k->dim[1] >= least && k->dim[1] <= n_keep))
        return 0;
    return err_set(err, ERR_FORMAT, "tensor '%s' does not have the %d to %d rows of each head that %s keeps whole",
                   k->name, least, n_keep, p->config.name);
}

/* Checks that the tensors of one layer exist and have the shapes that follow from its lengths; returns how many, or an
 * error. */
static int check_layer(struct packed_payload *p, int layer, struct err *err)
{
    struct packed_part part[LAYOUT_MAX] = { { 0 } };
    char name[TENSOR_NAME];
    int n[PAYLOAD_HEADS_MAX];

    if (config_is_ragged(&p->config) && check_lengths(p, layer, err))
        return err->code;
    if (check_whole(p, layer, err))
        return err->code;
    packed_payload_lengths(p, layer, n);
    const struct layer_lengths lengths = { layer, n, packed_payload_whole(p, layer) };
    int n_parts = packed_payload_layout(&p->config, &p->shape, p->file.n_tokens, &lengths, part);
    for (int i = 0; i < n_parts; i++) {
        const struct st_tensor *is = find_part(p, layer, part[i].name);
        if (part[i].at_most && is && is->dim[0] < part[i].dim[0])
            part[i].dim[0] = is->dim[0];
        struct st_tensor want = packed_payload_tensor(layer, &part[i], name);
        if (check_tensor(p, &want, err))
            return err->code;
        part[i].at = unconst(is->at);
        p->bytes += part[i].name == positions ? 0 : (int64_t)packed_part_bytes(&part[i]);
    }
    return check_sizes(p, layer, part, err) ? err->code : n_parts;
}

static int check_tensors(struct packed_payload *p, struct err *err)
{
    int known = p->file.tokens ? 1 : 0;

    for (int l = 0; l < p->shape.n_layers; l++) {
        int n = check_layer(p, l, err);
        if (n < 0)
            return n;
        known += n;
    }
    if (n_sharing(p) > 1 && check_sum(p, 0, p->shape.n_layers, err))
        return err->code;
    if (known != p->file.st.n)
        return err_set(err, ERR_FORMAT, "%d tensors, but %d layers%s have %d", p->file.st.n, p->shape.n_layers,
                       p->file.tokens ? " and the tokens" : "", known);
    return 0;
}

/* Checks that the positions of each head ascend. */
static int check_positions(const struct packed_payload *p, int layer, struct err *err)
{
    const struct st_tensor *t = find_part(p, layer, positions);
    int n[PAYLOAD_HEADS_MAX];
    const char *at = t ? t->at : NULL;

    packed_payload_lengths(p, layer, n);
    for (int g = 0; t && g < p->shape.n_kv_heads; g++) {
        for (int32_t i = 0, position, last = -1; i < n[g]; i++, at += sizeof(position)) {
            memcpy(&position, at, sizeof(position));
            if (position <= last || position >= p->file.n_tokens)
                return err_set(err, ERR_FORMAT, "tensor '%s' does not ascend, or leaves the %d tokens", t->name,
                               p->file.n_tokens);
            last = position;
        }
    }
    return 0;
}

/* Checks that the metadata's description of the cache agrees with the tensors. */
static int check_cache(struct packed_payload *p, struct err *err)
{
    const struct kv_shape *said = &p->cache.shape, *is = &p->shape;

    if (!p->file.origin.cache)
        return 0;
    if (payload_cache_parse(&p->cache, p->file.origin.cache, err))
        return err->code;
    if (said->n_layers != is->n_layers || said->n_kv_heads != is->n_kv_heads || said->head_dim != is->head_dim)
        return err_set(err, ERR_FORMAT,
                       "metadata 'cache' has %d layers of %d kv heads of %d columns, the tensors %d of %d of %d",
                       said->n_layers, said->n_kv_heads, said->head_dim, is->n_layers, is->n_kv_heads, is->head_dim);
    p->shape = *said;
    return 0;
}

static int compare_kept(const struct packed_payload *p, const int *kept, struct err *err)
{
    int n[PAYLOAD_HEADS_MAX];

    for (int l = 0; l < p->shape.n_layers; l++) {
        packed_payload_lengths(p, l, n);
        for (int g = 0; g < p->shape.n_kv_heads; g++)
            if (n[g] != kept[l])
                return err_set(err, ERR_FORMAT, "metadata 'lengths' has %d tokens in layer %d, the tensors %d", kept[l],
                               l, n[g]);
    }
    return 0;
}

static int check_kept(const struct packed_payload *p, struct err *err)
{
    int *kept = p->file.origin.lengths ? calloc((size_t)p->shape.n_layers, sizeof(*kept)) : NULL;

    if (!p->file.origin.lengths)
        return 0;
    if (!kept)
        return err_nomem(err);
    int code = payload_lengths_parse(kept, p->shape.n_layers, p->file.origin.lengths, err) || compare_kept(p, kept, err)
                   ? err->code
                   : 0;
    free(kept);
    return code;
}

static int check_errors(const struct packed_payload *p, struct err *err)
{
    const char *text = p->file.origin.errors;
    double *error = text ? calloc(2 * (size_t)p->shape.n_layers + 1, sizeof(*error)) : NULL;

    if (text && !error)
        return err_nomem(err);
    int code = text ? payload_errors_parse(error, p->shape.n_layers, text, err) : 0;
    free(error);
    return code;
}

static int check_packed(struct packed_payload *p, enum payload_check check, struct err *err)
{
    if (config_parse(&p->config, p->file.config, err))
        return err->code = ERR_FORMAT; // config_parse() says ERR_USAGE, but this text comes from a file
    if (read_shape(p, err) || check_tensors(p, err) || check_cache(p, err) || check_kept(p, err) ||
        check_errors(p, err))
        return err->code;
    if (check == PAYLOAD_HEADER)
        return 0;
    if (payload_check_sums(&p->file, err))
        return err->code;
    for (int l = 0; l < p->shape.n_layers; l++)
        if (check_positions(p, l, err))
            return err->code;
    return 0;
}

int packed_payload_parse(struct packed_payload *p, const void *bytes, size_t n, enum payload_check check,
                         struct err *err)
{
    *p = (struct packed_payload){ 0 };
    if (payload_parse(&p->file, bytes, n, err))
        return err->code;
    if (check_packed(p, check, err)) {
        packed_payload_close(p);
        return err->code;
    }
    return 0;
}

int packed_payload_open(struct packed_payload *p, const char *path, enum payload_check check, struct err *err)
{
    *p = (struct packed_payload){ 0 };
    if (payload_open(&p->file, path, err))
        return err->code;
    if (check_packed(p, check, err)) {
        packed_payload_close(p);
        return err_wrap(err, "'%s'", path);
    }
    return 0;
}

void packed_payload_close(struct packed_payload *p)
{
    payload_close(&p->file);
    *p = (struct packed_payload){ 0 };
}

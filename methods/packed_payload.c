/* packed_payload.c - the layout of a config, which both directions share: a variant is written tensor by tensor in that
 * order, and a file is compared with it tensor by tensor.
 *
 * The header holds checksums of the bytes after it, so it is written twice, with zeros first.
 */
#include "methods/packed_payload.h"

#include "kernels/half.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- layout ------------------------------------------------------------ */

static const enum st_type type_of[] = {
    [DTYPE_F32] = ST_F32, [DTYPE_F16] = ST_F16, [DTYPE_BF16] = ST_BF16, [DTYPE_I32] = ST_I32, [DTYPE_U8] = ST_U8,
};

int packed_payload_layout(const struct config *config, const struct kv_shape *shape, int n_tokens,
                          struct packed_part part[LAYOUT_MAX])
{
    int n = config_parts(config, shape, n_tokens, part), n_kept = config_n_keep(config, n_tokens);

    if (n_kept < n_tokens && part[0].dim[1] == n_kept)
        part[n++] = (struct packed_part){ "positions", DTYPE_I32, { shape->n_kv_heads, n_kept, 1 }, NULL };
    return n;
}

struct st_tensor packed_payload_tensor(int layer, const struct packed_part *part, char name[TENSOR_NAME])
{
    snprintf(name, TENSOR_NAME, "layers.%d.%s", layer, part->name);
    return (struct st_tensor){
        .name = name,
        .type = type_of[part->dtype],
        .n_dims = strcmp(part->name, "positions") == 0 ? 2 : 3,
        .dim = { part->dim[0], part->dim[1], part->dim[2] },
    };
}

/* ---- writing ----------------------------------------------------------- */

struct writer {
    struct file_out out;
    const struct variant *v;
    const struct payload_key *key;
    struct packed_part part[LAYOUT_MAX]; // of one layer
    int n_parts;
    int n_tensors;              // the tokens, then L * n_parts
    struct st_tensor *tensor;   // (n_tensors)
    char (*name)[TENSOR_NAME];  // (n_tensors)
    char (*checksum)[XXH3_HEX]; // (n_tensors)
    void *bytes;                // one tensor as it is stored
    float *rows;                // one head's rows, as the backend gives them
};

static void writer_release(struct writer *w)
{
    file_abort(&w->out);
    free(w->tensor);
    free(w->name);
    free(w->checksum);
    free(w->bytes);
    free(w->rows);
}

static int writer_init(struct writer *w, const struct variant *v, struct err *err)
{
    size_t n, max = 1;

    w->n_parts = packed_payload_layout(v->config, &v->shape, v->n_tokens, w->part);
    w->n_tensors = 1 + v->shape.n_layers * w->n_parts;
    n = (size_t)w->n_tensors;
    w->tensor = calloc(n, sizeof(*w->tensor));
    w->name = calloc(n, sizeof(*w->name));
    w->checksum = calloc(n, sizeof(*w->checksum));
    for (int i = 0; i < w->n_parts; i++)
        max = packed_part_bytes(&w->part[i]) > max ? packed_part_bytes(&w->part[i]) : max;
    w->bytes = malloc(max);
    w->rows = malloc((size_t)v->n_tokens * (size_t)v->shape.head_dim * sizeof(float));
    if (!w->tensor || !w->name || !w->checksum || !w->bytes || !w->rows)
        return err_nomem(err);
    w->tensor[0] = payload_tokens(v->n_tokens);
    for (int i = 0; i < w->n_tensors - 1; i++)
        w->tensor[1 + i] = packed_payload_tensor(i / w->n_parts, &w->part[i % w->n_parts], w->name[i]);
    for (int i = 0; i < w->n_tensors; i++)
        memset(w->checksum[i], '0', XXH3_HEX - 1);
    return 0;
}

/* The header with the checksums known so far. */
static int write_header(struct writer *w, struct err *err)
{
    const struct payload_made made = { .config = w->v->config->name,
                                       .model_digest = w->key->model_digest,
                                       .token_digest = w->key->token_digest,
                                       .n_tokens = w->v->n_tokens,
                                       .tensor = w->tensor,
                                       .checksum = w->checksum,
                                       .n = w->n_tensors };

    return payload_write_header(&w->out, &made, err);
}

/* The last `last` rows of one matrix, rounded to BF16. */
static void store_rows(struct writer *w, uint16_t *to, const char *matrix, int n, int last)
{
    const struct variant *v = w->v;
    size_t K = (size_t)v->shape.head_dim, count = (size_t)last * K;

    assert(v->shape.dtype == DTYPE_F32);
    v->backend->read(v->backend, w->rows, matrix + (size_t)(n - last) * K * sizeof(float), count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        to[i] = bf16_from_f32(w->rows[i]);
}

/* One tensor's bytes, in w->bytes or where the variant has them. */
static const void *tensor_bytes(struct writer *w, int layer, int i)
{
    const struct variant *v = w->v;
    const struct packed_part *part = &w->part[i];
    size_t G = (size_t)v->shape.n_kv_heads, head = packed_part_bytes(part) / G;

    if (i >= v->n_parts) // positions
        return v->kept + (size_t)layer * packed_part_bytes(part) / sizeof(*v->kept);
    if (v->parts[layer * v->n_parts + i].at)
        return v->parts[layer * v->n_parts + i].at;
    for (size_t g = 0; g < G; g++) {
        const struct kv_rows *rows = &v->rows[(size_t)layer * G + g];
        store_rows(w, (uint16_t *)((char *)w->bytes + g * head), part->name[0] == 'k' ? rows->k : rows->v, rows->n,
                   (int)part->dim[1]);
    }
    return w->bytes;
}

/* Writes the bytes of tensor `i`; file_commit() asks the stream whether all of it was written. */
static void write_tensor(struct writer *w, int i, const void *at, size_t n)
{
    digest_xxh3_hex(at, n, w->checksum[i]);
    fwrite(at, 1, n, w->out.f);
}

static int write_all(struct writer *w, uint64_t *bytes, struct err *err)
{
    if (write_header(w, err))
        return err->code;
    write_tensor(w, 0, w->key->ids, (size_t)w->v->n_tokens * sizeof(*w->key->ids));
    for (int l = 0; l < w->v->shape.n_layers; l++) {
        for (int i = 0; i < w->n_parts; i++)
            write_tensor(w, 1 + l * w->n_parts + i, tensor_bytes(w, l, i), packed_part_bytes(&w->part[i]));
    }
    if (w->v->backend->sync(w->v->backend, err))
        return err->code;
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
    int code = writer_init(&w, v, err);
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

/* G and K from the first layer's `k`, L from the number of tensors. */
static int read_shape(struct packed_payload *p, struct err *err)
{
    enum { HEADS_MAX = 1 << 12, WIDTH_MAX = 1 << 13 }; // so that no product below leaves 64 bits
    const struct st_tensor *k = safetensors_find(&p->file.st, "layers.0.k");
    struct packed_part part[LAYOUT_MAX];

    if (!k || k->n_dims != 3 || k->dim[0] < 1 || k->dim[0] > HEADS_MAX || k->dim[2] < 1 || k->dim[2] > WIDTH_MAX)
        return err_set(err, ERR_FORMAT, "no tensor 'layers.0.k' of shape [heads, rows, head_dim]");
    p->shape = (struct kv_shape){ .n_kv_heads = (int)k->dim[0], .head_dim = (int)k->dim[2] };
    if (config_check(&p->config, &p->shape, err))
        return err->code = ERR_FORMAT;
    p->n_kept = config_n_keep(&p->config, p->file.n_tokens);
    int per_layer = packed_payload_layout(&p->config, &p->shape, p->file.n_tokens, part);
    int n = p->file.st.n - (p->file.tokens ? 1 : 0);
    p->shape.n_layers = n / per_layer;
    if (n % per_layer)
        return err_set(err, ERR_FORMAT, "%d tensors of layers, where each has %d", n, per_layer);
    return 0;
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
        return err_set(err, ERR_FORMAT, "tensor '%s' has another shape than %s makes of %d tokens", want->name,
                       p->config.name, p->file.n_tokens);
    return 0;
}

static int check_tensors(const struct packed_payload *p, struct err *err)
{
    struct packed_part part[LAYOUT_MAX];
    char name[TENSOR_NAME];
    int n = packed_payload_layout(&p->config, &p->shape, p->file.n_tokens, part);

    for (int l = 0; l < p->shape.n_layers; l++) {
        for (int i = 0; i < n; i++) {
            struct st_tensor want = packed_payload_tensor(l, &part[i], name);
            if (check_tensor(p, &want, err))
                return err->code;
        }
    }
    return 0;
}

static int check_positions(const struct packed_payload *p, int layer, struct err *err)
{
    char name[TENSOR_NAME];

    snprintf(name, sizeof(name), "layers.%d.positions", layer);
    const struct st_tensor *t = safetensors_find(&p->file.st, name);
    for (int64_t i = 0, last = -1; t && i < (int64_t)(t->bytes / 4); i++) {
        int32_t position;
        memcpy(&position, (const char *)t->at + 4 * i, 4);
        if (i % p->n_kept == 0)
            last = -1;
        if (position <= last || position >= p->file.n_tokens)
            return err_set(err, ERR_FORMAT, "tensor '%s' does not rise from 0 to below %d", name, p->file.n_tokens);
        last = position;
    }
    return 0;
}

static int check_packed(struct packed_payload *p, enum payload_check check, struct err *err)
{
    if (config_parse(&p->config, p->file.config, err))
        return err->code = ERR_FORMAT; // config_parse() reports misuse, but this text comes from a file
    if (read_shape(p, err) || check_tensors(p, err))
        return err->code;
    p->bytes = config_bytes(&p->config, &p->shape, p->file.n_tokens);
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

/* packed_payload_write.c - writes a variant as a payload, tensor by tensor in the order of its layout.
 *
 * The header holds checksums of the bytes after it, so it is written twice, the first time with zeros.
 */
#include "variants/packed_payload.h"

#include "codes/half.h"
#include "variants/variant_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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
    for (int l = 0; l < kv_all_layers(&v->shape); l++) {
        int n_parts = l < v->shape.n_layers ? v->n_parts : 0; // of layers with a window all are rows
        const struct layer_lengths lengths = { l, w->lengths + (size_t)l * G, variant_whole(v, l), v->n_tokens };
        struct packed_part part[LAYOUT_MAX];
        int n = packed_payload_layout(v->config, &v->shape, &lengths, part);
        memcpy(part, v->parts + l * n_parts, (size_t)n_parts * sizeof(*part)); // with the sizes that data decided
        for (int i = 0; i < n; i++) {
            const void *at = i < n_parts ? v->parts[l * n_parts + i].at : n_parts ? kept : NULL; // positions come last
            w->tensor[w->n_tensors] = packed_payload_tensor(kv_number(&v->shape, l), &part[i], w->name[w->n_tensors]);
            w->stored[w->n_tensors++] = (struct stored){ l, part[i], at };
        }
        for (size_t g = 0; kept && n_parts && g < G; g++)
            kept += lengths.n[g];
    }
}

static int alloc_tensors(struct writer *w, struct err *err)
{
    const struct variant *v = w->v;
    size_t L = (size_t)kv_all_layers(&v->shape), n = 1 + L * LAYOUT_MAX, heads = L * (size_t)v->shape.n_kv_heads;

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
    int L = kv_all_layers(&v->shape), *kept = calloc((size_t)L, sizeof(*kept));
    bool all = true;

    for (int l = 0; kept && l < L; l++) {
        kept[l] = w->lengths[kv_place(&v->shape, l) * v->shape.n_kv_heads];
        all = all && kept[l] == v->n_tokens;
    }
    payload_cache_put(&w->cache, &v->shape, w->key->model);
    if (kept && !all && !v->config->ragged)
        payload_lengths_put(&w->kept, kept, L);
    free(kept);
    return !kept || buf_failed(&w->cache) || buf_failed(&w->kept) ? err_nomem(err) : 0;
}

/* Room for the checksums of a tensor's heads, as zeros. */
static int add_head_checksum(struct writer *w, int i, struct err *err)
{
    size_t n = (size_t)w->v->shape.n_kv_heads * (XXH3_HEX - 1);

    if (i == 0 || w->v->shape.n_kv_heads == 1 || w->v->config->ragged) /* tensor 0 is the tokens */
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
    for (int h = 0; h < kv_all_layers(&v->shape) * v->shape.n_kv_heads; h++)
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

/* How many of n rows a head keeps in full. */
static int rows_in_full(const struct variant *v, const struct stored *s, int n)
{
    struct head_part part[HEAD_PART_MAX];
    int i = 0;

    parts_of_head(v->config, v->shape.head_dim, n, variant_whole(v, s->layer), part);
    while (strcmp(part[i].name, s->part.name) != 0)
        i++;
    return (int)part[i].rows;
}

/* Fills w->bytes with `k` or `v` of a layer: the rows that each head keeps in full. */
static int store_part(struct writer *w, const struct stored *s, struct err *err)
{
    const struct variant *v = w->v;
    bool keys = strcmp(s->part.name, "k") == 0;
    uint16_t *to = w->bytes;

    for (int g = 0; g < v->shape.n_kv_heads; g++) {
        const struct kv_rows *head = &v->rows[s->layer * v->shape.n_kv_heads + g];
        struct matrix_rows rows = { keys ? head->k : head->v, head->n, head->n };
        if (s->layer < v->shape.n_layers)
            rows.last = rows_in_full(v, s, head->n);
        if (store_rows(w, to, &rows, err))
            return err->code;
        to += rows.last * v->shape.head_dim;
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

    assert(v->parts && (key->model || v->shape.n_windowed == 0));
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

/* payload.c - variants written as safetensors, and read back with every claim checked. */
#include "methods/payload.h"

#include "base/buf.h"
#include "base/parse.h"
#include "kernels/half.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 48 }; // "layers." a number "." a part's name

static const enum st_type type_of[] = {
    [DTYPE_F32] = ST_F32, [DTYPE_F16] = ST_F16, [DTYPE_BF16] = ST_BF16, [DTYPE_I32] = ST_I32, [DTYPE_U8] = ST_U8,
};

/* The tensors of one layer: the config's parts, then positions where they are stored. */
struct layout {
    struct packed_part part[PART_MAX + 1];
    int n;
};

static struct layout get_layout(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    struct layout l = { .n = config_parts(config, shape, n_tokens, l.part) };
    int n = config_n_keep(config, n_tokens);

    if (n < n_tokens && l.part[0].dim[1] == n)
        l.part[l.n++] = (struct packed_part){ "positions", DTYPE_I32, { shape->n_kv_heads, n, 1 }, NULL };
    return l;
}

static int n_dims(const struct packed_part *part)
{
    return strcmp(part->name, "positions") == 0 ? 2 : 3;
}

static void tensor_name(char name[NAME], int layer, const struct packed_part *part)
{
    snprintf(name, NAME, "layers.%d.%s", layer, part->name);
}

/* ---- writing ----------------------------------------------------------- */

struct writer {
    struct file_out out;
    const struct variant *v;
    const struct payload_key *key;
    struct layout layout;
    struct st_tensor *tensor;   // (L * layout.n)
    char (*name)[NAME];         // (L * layout.n)
    char (*checksum)[XXH3_HEX]; // (L * layout.n)
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
    size_t n, most = 1;

    w->layout = get_layout(v->config, &v->shape, v->n_tokens);
    n = (size_t)v->shape.n_layers * (size_t)w->layout.n;
    w->tensor = calloc(n, sizeof(*w->tensor));
    w->name = calloc(n, sizeof(*w->name));
    w->checksum = calloc(n, sizeof(*w->checksum));
    for (int i = 0; i < w->layout.n; i++)
        most = packed_part_bytes(&w->layout.part[i]) > most ? packed_part_bytes(&w->layout.part[i]) : most;
    w->bytes = malloc(most);
    w->rows = malloc((size_t)v->n_tokens * (size_t)v->shape.head_dim * sizeof(float));
    if (!w->tensor || !w->name || !w->checksum || !w->bytes || !w->rows)
        return err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const struct packed_part *part = &w->layout.part[i % (size_t)w->layout.n];
        tensor_name(w->name[i], (int)(i / (size_t)w->layout.n), part);
        memset(w->checksum[i], '0', XXH3_HEX - 1);
        w->tensor[i] = (struct st_tensor){
            .name = w->name[i],
            .type = type_of[part->dtype],
            .n_dims = n_dims(part),
            .dim = { part->dim[0], part->dim[1], part->dim[2] },
        };
    }
    return 0;
}

/* Header with the checksums known so far: their width is fixed, so a second one fits over the first. */
static int write_header(struct writer *w, struct err *err)
{
    struct buf sums = { 0 };
    struct json_out json = { .buf = &sums };
    int n = w->v->shape.n_layers * w->layout.n;
    char n_tokens[TEXT_SHORT];

    json_begin(&json, NULL, '{');
    for (int i = 0; i < n; i++)
        json_put_text(&json, w->name[i], w->checksum[i]);
    json_end(&json, '}');
    if (buf_failed(&sums)) {
        buf_release(&sums);
        return err_nomem(err);
    }
    snprintf(n_tokens, sizeof(n_tokens), "%d", w->v->n_tokens);
    const struct st_meta meta[] = {
        { "evp", "payload" },
        { "version", "1" },
        { "config", w->v->config->name },
        { "model_digest", w->key->model_digest },
        { "token_digest", w->key->token_digest },
        { "n_tokens", n_tokens },
        { "checksums", sums.at },
    };
    int code = safetensors_write_header(&w->out, w->tensor, n, meta, (int)(sizeof(meta) / sizeof(*meta)), err);
    buf_release(&sums);
    return code;
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
    const struct packed_part *part = &w->layout.part[i];
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

static int write_all(struct writer *w, uint64_t *bytes, struct err *err)
{
    if (write_header(w, err))
        return err->code;
    for (int l = 0; l < w->v->shape.n_layers; l++) {
        for (int i = 0; i < w->layout.n; i++) {
            size_t n = packed_part_bytes(&w->layout.part[i]);
            const void *at = tensor_bytes(w, l, i);
            digest_xxh3_hex(at, n, w->checksum[l * w->layout.n + i]);
            fwrite(at, 1, n, w->out.f); // file_commit asks the stream whether all of it was written
        }
    }
    if (w->v->backend->sync(w->v->backend, err))
        return err->code;
    if (bytes)
        *bytes = (uint64_t)ftell(w->out.f);
    rewind(w->out.f);
    return write_header(w, err);
}

int payload_write(const char *path, const struct variant *v, const struct payload_key *key, uint64_t *bytes,
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

static int want_meta(const struct safetensors *st, const char *key, const char **value, struct err *err)
{
    *value = safetensors_meta(st, key);
    return *value ? 0 : err_set(err, ERR_FORMAT, "metadata '%s' is missing", key);
}

static int want_digest(const struct safetensors *st, const char *key, const char **value, struct err *err)
{
    if (want_meta(st, key, value, err))
        return err->code;
    if (strlen(*value) != DIGEST_HEX - 1 || strspn(*value, "0123456789abcdef") != DIGEST_HEX - 1)
        return err_set(err, ERR_FORMAT, "metadata '%s' is no SHA-256", key);
    return 0;
}

static int read_metadata(struct payload *p, struct err *err)
{
    const char *kind, *version, *config, *count;
    int64_t n_tokens;

    if (want_meta(&p->st, "evp", &kind, err) || want_meta(&p->st, "version", &version, err) ||
        want_meta(&p->st, "config", &config, err) || want_meta(&p->st, "n_tokens", &count, err) ||
        want_digest(&p->st, "model_digest", &p->model_digest, err) ||
        want_digest(&p->st, "token_digest", &p->token_digest, err))
        return err->code;
    if (strcmp(kind, "payload") != 0)
        return err_set(err, ERR_FORMAT, "not a payload");
    if (strcmp(version, "1") != 0)
        return err_set(err, ERR_FORMAT, "a payload of version '%s'; this program reads version %d", version,
                       PAYLOAD_VERSION);
    if (!parse_int(count, &n_tokens) || n_tokens < 1 || n_tokens > INT32_MAX)
        return err_set(err, ERR_FORMAT, "metadata 'n_tokens' is no number of tokens");
    p->n_tokens = (int)n_tokens;
    if (config_parse(&p->config, config, err))
        return err->code = ERR_FORMAT; // here it is no command line
    return 0;
}

/* G and K from the first layer's `k`, L from the number of tensors. */
static int read_shape(struct payload *p, struct err *err)
{
    enum { HEADS_MOST = 1 << 12, WIDTH_MOST = 1 << 13 }; // so that no product below leaves 64 bits
    const struct st_tensor *k = safetensors_find(&p->st, "layers.0.k");

    if (!k || k->n_dims != 3 || k->dim[0] < 1 || k->dim[0] > HEADS_MOST || k->dim[2] < 1 || k->dim[2] > WIDTH_MOST)
        return err_set(err, ERR_FORMAT, "no tensor 'layers.0.k' of shape [heads, rows, head_dim]");
    p->shape = (struct kv_shape){ .n_kv_heads = (int)k->dim[0], .head_dim = (int)k->dim[2] };
    if (config_check(&p->config, &p->shape, err))
        return err->code = ERR_FORMAT;
    p->n = config_n_keep(&p->config, p->n_tokens);
    int per_layer = get_layout(&p->config, &p->shape, p->n_tokens).n;
    p->shape.n_layers = p->st.n / per_layer;
    if (p->st.n % per_layer)
        return err_set(err, ERR_FORMAT, "%d tensors, where each layer has %d", p->st.n, per_layer);
    return 0;
}

static int check_tensor(const struct payload *p, int layer, const struct packed_part *part, struct err *err)
{
    char name[NAME];

    tensor_name(name, layer, part);
    const struct st_tensor *t = safetensors_find(&p->st, name);
    if (!t)
        return err_set(err, ERR_FORMAT, "tensor '%s' is missing", name);
    if (t->type != type_of[part->dtype])
        return err_set(err, ERR_FORMAT, "tensor '%s' is %s, not %s", name, st_type_name(t->type),
                       st_type_name(type_of[part->dtype]));
    if (t->n_dims != n_dims(part) || memcmp(t->dim, part->dim, (size_t)t->n_dims * sizeof(*t->dim)) != 0)
        return err_set(err, ERR_FORMAT, "tensor '%s' has another shape than %s makes of %d tokens", name,
                       p->config.name, p->n_tokens);
    return 0;
}

static int check_checksums(const struct payload *p, struct err *err)
{
    const char *text = safetensors_meta(&p->st, "checksums");
    struct json *sums = text ? json_parse(text, strlen(text), err) : NULL;
    char hex[XXH3_HEX];

    if (!sums)
        return err_set(err, ERR_FORMAT, "metadata 'checksums' is no JSON object");
    int code = 0;
    for (int i = 0; i < p->st.n && !code; i++) {
        const struct st_tensor *t = &p->st.tensor[i];
        const char *want = json_text(json_get(sums, t->name));
        digest_xxh3_hex(t->at, (size_t)t->bytes, hex);
        if (!want)
            code = err_set(err, ERR_FORMAT, "tensor '%s' has no checksum", t->name);
        else if (strcmp(want, hex) != 0)
            code = err_set(err, ERR_FORMAT, "tensor '%s' has checksum %s, not %s: the file is damaged", t->name, hex,
                           want);
    }
    json_free(sums);
    return code;
}

static int check_positions(const struct payload *p, int layer, struct err *err)
{
    char name[NAME];

    snprintf(name, sizeof(name), "layers.%d.positions", layer);
    const struct st_tensor *t = safetensors_find(&p->st, name);
    for (int64_t i = 0, last = -1; t && i < (int64_t)(t->bytes / 4); i++) {
        int32_t position;
        memcpy(&position, (const char *)t->at + 4 * i, 4);
        if (i % p->n == 0)
            last = -1;
        if (position <= last || position >= p->n_tokens)
            return err_set(err, ERR_FORMAT, "tensor '%s' does not rise from 0 to below %d", name, p->n_tokens);
        last = position;
    }
    return 0;
}

static int check_payload(struct payload *p, enum payload_check check, struct err *err)
{
    if (read_metadata(p, err) || read_shape(p, err))
        return err->code;
    struct layout layout = get_layout(&p->config, &p->shape, p->n_tokens);
    for (int l = 0; l < p->shape.n_layers; l++)
        for (int i = 0; i < layout.n; i++)
            if (check_tensor(p, l, &layout.part[i], err))
                return err->code;
    p->bytes = config_bytes(&p->config, &p->shape, p->n_tokens);
    if (check == PAYLOAD_HEADER)
        return 0;
    if (check_checksums(p, err))
        return err->code;
    for (int l = 0; l < p->shape.n_layers; l++)
        if (check_positions(p, l, err))
            return err->code;
    return 0;
}

int payload_parse(struct payload *p, const void *bytes, size_t n, enum payload_check check, struct err *err)
{
    *p = (struct payload){ 0 };
    if (safetensors_parse(&p->st, bytes, n, err))
        return err->code;
    if (check_payload(p, check, err)) {
        payload_close(p);
        return err->code;
    }
    return 0;
}

int payload_open(struct payload *p, const char *path, enum payload_check check, struct err *err)
{
    *p = (struct payload){ 0 };
    if (safetensors_open(&p->st, path, err))
        return err->code;
    if (check_payload(p, check, err)) {
        payload_close(p);
        return err_wrap(err, "'%s'", path);
    }
    return 0;
}

void payload_close(struct payload *p)
{
    safetensors_close(&p->st);
    *p = (struct payload){ 0 };
}

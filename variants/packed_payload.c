/* packed_payload.c - the layout of payloads, and their check: a variant is written tensor by tensor in its order, and a
 * file is compared with it tensor by tensor. The lengths of a layer's heads follow from the config; where they depend
 * on the data, they are read from the file.
 */
#include "variants/packed_payload.h"

#include "base/unconst.h"
#include "variants/variant_internal.h"

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

int packed_payload_layout(const struct config *config, const struct kv_shape *shape,
                          const struct layer_lengths *lengths, struct packed_part part[LAYOUT_MAX])
{
    int G = shape->n_kv_heads, whole = lengths->layer >= shape->n_layers ? lengths->n[0] : 0;
    if (whole) {
        part[0] = (struct packed_part){ "k", DTYPE_BF16, 3, { G, whole, shape->head_dim }, NULL, false };
        part[1] = part[0];
        part[1].name = "v";
        return 2;
    }
    int n = config_parts(config, shape, lengths, part);
    int64_t kept = sum_of(lengths->n, G);

    if (kept == (int64_t)G * lengths->n_tokens || config->pack)
        return n;
    part[n++] = config->ragged ? (struct packed_part){ positions, DTYPE_I32, 1, { kept }, NULL, false }
                               : (struct packed_part){ positions, DTYPE_I32, 2, { G, lengths->n[0] }, NULL, false };
    return n;
}

struct st_tensor packed_payload_tensor(int number, const struct packed_part *part, char name[TENSOR_NAME])
{
    snprintf(name, TENSOR_NAME, "layers.%d.%s", number, part->name);
    return (struct st_tensor){
        .name = name,
        .type = type_of[part->dtype],
        .n_dims = part->n_dims,
        .dim = { part->dim[0], part->dim[1], part->dim[2] },
    };
}

/* ---- reading ----------------------------------------------------------- */

static const struct st_tensor *find_number(const struct packed_payload *p, int number, const char *part)
{
    char name[TENSOR_NAME];

    snprintf(name, sizeof(name), "layers.%d.%s", number, part);
    return safetensors_find(&p->file.st, name);
}

static const struct st_tensor *find_part(const struct packed_payload *p, int layer, const char *part)
{
    return find_number(p, kv_number(&p->shape, layer), part);
}

/* L from the names, which layers have a window from the description of the cache. */
static int read_layers(struct packed_payload *p, struct err *err)
{
    const struct kv_shape *said = &p->cache.shape;
    int n = 0;

    while (n <= KV_LAYERS_MAX && find_number(p, n, "k"))
        n++;
    if (n > KV_LAYERS_MAX)
        return err_set(err, ERR_FORMAT, "more than %d layers", KV_LAYERS_MAX);
    if (p->file.origin.cache && kv_all_layers(said) != n)
        return err_set(err, ERR_FORMAT, "metadata 'cache' has %d layers, the tensors %d", kv_all_layers(said), n);
    p->shape = *said;
    p->shape.n_layers = n - said->n_windowed;
    return 0;
}

/* G and K from the first layer; where heads differ in length, of those without a window. */
static int read_shape(struct packed_payload *p, struct err *err)
{
    enum { WIDTH_MAX = 1 << 13 }; // products of dimensions fit in 64 bits
    if (read_layers(p, err))
        return err->code;
    int first = kv_all_layers(&p->shape) > 0 ? kv_number(&p->shape, 0) : 0;
    const struct st_tensor *k = find_number(p, first, "k"), *lengths = find_number(p, first, "lengths");
    bool ragged = p->config.ragged && p->shape.n_layers > 0;
    int n_dims = ragged ? 2 : 3;
    int64_t K = k && k->n_dims == n_dims ? k->dim[n_dims - 1] : 0, G = k ? k->dim[0] : 0;

    if (ragged && (!lengths || lengths->n_dims != 1))
        return err_set(err, ERR_FORMAT, "no tensor 'layers.0.lengths' of shape [heads]");
    if (ragged)
        G = lengths->dim[0];
    if (K < 1 || K > WIDTH_MAX || G < 1 || G > PAYLOAD_HEADS_MAX)
        return err_set(err, ERR_FORMAT, "no tensor 'layers.0.k' of shape [%srows, head_dim]", ragged ? "" : "heads, ");
    p->shape.n_kv_heads = (int)G;
    p->shape.head_dim = (int)K;
    return config_check(&p->config, &p->shape, err) ? err->code = ERR_FORMAT : 0;
}

void packed_payload_lengths(const struct packed_payload *p, int layer, int *n)
{
    size_t G = (size_t)p->shape.n_kv_heads;

    bool window = layer >= p->shape.n_layers;

    if (p->config.ragged && !window) {
        memcpy(n, find_part(p, layer, "lengths")->at, G * sizeof(*n));
        return;
    }
    for (size_t g = 0; g < G; g++)
        n[g] = window ? kv_layer_tokens(&p->shape, layer, p->file.n_tokens)
                      : config_n_keep(&p->config, &p->shape, p->file.n_tokens, layer);
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

/* Checks that the heads of some layers have as many tokens as the config keeps of these layers together, or not more
 * where that is not known. */
static int check_sum(const struct packed_payload *p, int first, int n_layers, struct err *err)
{
    int64_t kept = config_share(&p->config, &p->shape, p->file.n_tokens, first).pairs, sum = 0;
    int n[PAYLOAD_HEADS_MAX];

    for (int l = first; l < first + n_layers; l++) {
        packed_payload_lengths(p, l, n);
        sum += sum_of(n, p->shape.n_kv_heads);
    }
    bool known = p->config.knows_rows;
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

/* Checks the file's lengths of a layer's heads: each is from 0 to the context's tokens, and their sum is what the
 * config keeps of the layer, unless it shares with others. */
static int check_lengths(const struct packed_payload *p, int layer, struct err *err)
{
    char name[TENSOR_NAME];
    int n[PAYLOAD_HEADS_MAX], G = p->shape.n_kv_heads, T = p->file.n_tokens;
    struct st_tensor want = packed_payload_tensor(
        kv_number(&p->shape, layer),
        &(struct packed_part){ .name = "lengths", .dtype = DTYPE_I32, .n_dims = 1, .dim = { G } }, name);

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
    const struct method_coder *coder = p->config.pack ? p->config.pack->coder : NULL;

    for (int i = 0; coder && i < PART_MAX; i++)
        if (part[i].at_most && !coder->check_part(part, i))
            return err_set(err, ERR_FORMAT, "the size of tensor 'layers.%d.%s' is not what its streams take", layer,
                           part[i].name);
    return 0;
}

int packed_payload_whole(const struct packed_payload *p, int layer)
{
    bool whole = p->config.pack && p->config.pack->whole && layer < p->shape.n_layers;

    return whole ? (int)find_part(p, layer, "k")->dim[1] : 0;
}

/* Checks that the file has as many whole rows in a layer as the config may keep. */
static int check_whole(const struct packed_payload *p, int layer, struct err *err)
{
    const struct st_tensor *k = find_part(p, layer, "k");
    int n_keep = config_n_keep(&p->config, &p->shape, p->file.n_tokens, layer);
    int least = config_least_whole(&p->config, n_keep);

    if (!p->config.pack || !p->config.pack->whole || (k->n_dims == 3 && k->dim[1] >= least && k->dim[1] <= n_keep))
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

    bool full = layer < p->shape.n_layers;

    if (full && p->config.ragged && check_lengths(p, layer, err))
        return err->code;
    if (full && check_whole(p, layer, err))
        return err->code;
    packed_payload_lengths(p, layer, n);
    const struct layer_lengths lengths = { layer, n, packed_payload_whole(p, layer), p->file.n_tokens };
    int n_parts = packed_payload_layout(&p->config, &p->shape, &lengths, part);
    for (int i = 0; i < n_parts; i++) {
        const struct st_tensor *is = find_part(p, layer, part[i].name);
        if (part[i].at_most && is && is->dim[0] < part[i].dim[0])
            part[i].dim[0] = is->dim[0];
        struct st_tensor want = packed_payload_tensor(kv_number(&p->shape, layer), &part[i], name);
        if (check_tensor(p, &want, err))
            return err->code;
        part[i].at = unconst(is->at);
        p->bytes += part[i].name == positions ? 0 : (int64_t)packed_part_bytes(&part[i]);
    }
    return full && check_sizes(p, layer, part, err) ? err->code : n_parts;
}

static int check_tensors(struct packed_payload *p, struct err *err)
{
    int known = p->file.tokens ? 1 : 0;

    for (int l = 0; l < kv_all_layers(&p->shape); l++) {
        int n = check_layer(p, l, err);
        if (n < 0)
            return n;
        known += n;
    }
    if (n_sharing(p) > 1 && check_sum(p, 0, p->shape.n_layers, err))
        return err->code;
    if (known != p->file.st.n)
        return err_set(err, ERR_FORMAT, "%d tensors, but %d layers%s have %d", p->file.st.n, kv_all_layers(&p->shape),
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
    if (said->n_kv_heads != is->n_kv_heads || said->head_dim != is->head_dim)
        return err_set(err, ERR_FORMAT, "metadata 'cache' has %d kv heads of %d columns, the tensors %d of %d",
                       said->n_kv_heads, said->head_dim, is->n_kv_heads, is->head_dim);
    return 0;
}

static int compare_kept(const struct packed_payload *p, const int *kept, struct err *err)
{
    int n[PAYLOAD_HEADS_MAX];

    for (int l = 0; l < kv_all_layers(&p->shape); l++) {
        packed_payload_lengths(p, kv_place(&p->shape, l), n);
        for (int g = 0; g < p->shape.n_kv_heads; g++)
            if (n[g] != kept[l])
                return err_set(err, ERR_FORMAT, "metadata 'lengths' has %d tokens in layer %d, the tensors %d", kept[l],
                               l, n[g]);
    }
    return 0;
}

static int check_kept(const struct packed_payload *p, struct err *err)
{
    int L = kv_all_layers(&p->shape), *kept = p->file.origin.lengths ? calloc((size_t)L, sizeof(*kept)) : NULL;

    if (!p->file.origin.lengths)
        return 0;
    if (!kept)
        return err_nomem(err);
    int code =
        payload_lengths_parse(kept, L, p->file.origin.lengths, err) || compare_kept(p, kept, err) ? err->code : 0;
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
    if (p->file.origin.cache && payload_cache_parse(&p->cache, p->file.origin.cache, err))
        return err->code;
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

/* evp_encode.c - rows that an engine has computed become a payload: the bytes that evp-pack writes of the same rows,
 * for configs that need nothing else (variants/packed_payload.h has the layout). One side of a layer is in memory as
 * f32.
 */
#include "base/buf.h"
#include "codes/cachegen_codes.h"
#include "codes/config_name.h"
#include "codes/kivi_codes.h"
#include "codes/quant_rotation.h"
#include "codes/row_format.h"
#include "formats/payload.h"
#include "loader/libevicpress/evp_error.h"
#include "loader/libevicpress/row_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 1 << 10, HEADS = 1 << 12, NAME = 48, TENSORS = 1 + LAYERS * 10, PARTS = 3 };
enum coding { IN_FULL, BY_GROUPS, BY_ROWS, BY_STREAMS };

struct encoder {
    const struct evp_encode *e;
    enum coding coding;
    struct kivi_codes kivi;
    struct quant_pair pair;
    enum cachegen_cdf cdf;
    int heads, columns, n, layer, side; // n: rows of each head; the side in hand
    int lengths[HEADS];                 // (heads) n, for cachegen
    float *x, *rotation;                // (heads, n, columns) the side's rows, rounded to bf16
    void *part[PARTS];                  // what they become
    struct buf body;                    // the bytes of all tensors
    int n_tensors;
    struct st_tensor tensor[TENSORS];
    char name[TENSORS][NAME], checksum[TENSORS][XXH3_HEX], *head_checksum[TENSORS];
};

static int check(const struct evp_encode *e, struct err *err)
{
    uint64_t reserved = 0;

    for (size_t i = 0; i < sizeof(e->reserved) / sizeof(*e->reserved); i++)
        reserved |= e->reserved[i];
    if (!e->config || !e->tokens || !e->rows || !e->model_digest || !digest_is_hex(e->model_digest) || reserved)
        return err_set(err, ERR_FORMAT,
                       "config, tokens or rows is NULL, model_digest has not 64 hex digits, or "
                       "reserved is not zero");
    if (e->n_tokens < 1 || e->n_tokens > INT32_MAX / 2 || e->n_layers < 1 || e->n_layers > LAYERS || e->n_heads < 1 ||
        e->n_heads > HEADS || e->head_dim < 1 || e->head_dim > ROW_COLUMNS || e->type < EVICPRESS_BF16 ||
        e->type > EVICPRESS_F32)
        return err_set(err, ERR_FORMAT, "n_tokens, n_layers, n_heads, head_dim or type is out of range");
    for (int64_t i = 0; i < 2 * e->n_layers; i++)
        if (!e->rows[i])
            return err_set(err, ERR_FORMAT, "rows[%lld] is NULL", (long long)i);
    return 0;
}

static int find_coding(struct encoder *w, struct err *err)
{
    static const char *const methods[] = { [IN_FULL] = " none ",
                                           [BY_GROUPS] = " kivi int8 int4 ",
                                           [BY_ROWS] = " fp8 nvfp4 turboquant ",
                                           [BY_STREAMS] = " cachegen " };
    const char *config = w->e->config;
    char word[CONFIG_VALUE + 2];

    snprintf(word, sizeof(word), " %.*s ", (int)strcspn(config, ":"), config);
    for (w->coding = IN_FULL; !strstr(methods[w->coding], word); w->coding++)
        if (w->coding == BY_STREAMS || strchr(config, '+'))
            return err_set(err, ERR_FORMAT, "config '%.80s' needs more than the rows", config);
    bool fits = w->coding == BY_GROUPS    ? kivi_codes_parse(&w->kivi, config) && w->columns % w->kivi.group == 0
                : w->coding == BY_ROWS    ? row_format_parse(&w->pair, config, w->columns)
                : w->coding == BY_STREAMS ? cachegen_codes_parse(&w->cdf, config) && w->columns % 2 == 0
                                          : true;
    return fits ? 0 : err_set(err, ERR_FORMAT, "config '%.80s' does not fit rows of %d numbers", config, w->columns);
}

/* ---- tensors ---------------------------------------------------------------------------- */

/* Adds a tensor of the layer with the bytes at t->at; name[side]. */
static void add(struct encoder *w, const char *const name[2], struct st_tensor t)
{
    static const uint64_t size[] = { [ST_F32] = 4, [ST_F16] = 2, [ST_BF16] = 2, [ST_I32] = 4, [ST_U8] = 1 };
    int i = w->n_tensors++;

    snprintf(w->name[i], NAME, "layers.%d.%s", w->layer, name[w->side]);
    t.name = w->name[i];
    t.bytes = size[t.type];
    for (int d = 0; d < t.n_dims; d++)
        t.bytes *= (uint64_t)t.dim[d];
    w->tensor[i] = t;
    buf_add(&w->body, t.at, t.bytes);
}

/* One of part number i, with `lines` lines for each head. */
static void add_lines(struct encoder *w, int i, const struct row_tensor *as, int64_t lines)
{
    const struct st_tensor t = { NULL, as->type, 3, { w->heads, lines, as->columns }, w->part[i], 0, 0 };

    add(w, as->name, t);
}

static void load_side(struct encoder *w)
{
    const struct evp_encode *e = w->e;
    int64_t row = e->row_stride ? e->row_stride : w->columns, head = e->head_stride ? e->head_stride : row * w->n;
    const void *rows = e->rows[2 * w->layer + w->side];
    float *to = w->x;

    for (int g = 0; g < w->heads; g++)
        for (int i = 0; i < w->n; i++)
            for (int64_t c = 0, at = g * head + i * row; c < w->columns; c++) {
                float x = e->type == EVICPRESS_F32   ? ((const float *)rows)[at + c]
                          : e->type == EVICPRESS_F16 ? f16_to_f32(((const uint16_t *)rows)[at + c])
                                                     : bf16_to_f32(((const uint16_t *)rows)[at + c]);
                *to++ = bf16_to_f32(bf16_from_f32(x));
            }
}

/* The rows of each head from number `first` on. */
static void put_full(struct encoder *w, int64_t first)
{
    uint16_t *to = w->part[0];

    for (int g = 0; g < w->heads; g++)
        for (int64_t i = (g * (int64_t)w->n + first) * w->columns; i < (g + 1) * (int64_t)w->n * w->columns; i++)
            *to++ = bf16_from_f32(w->x[i]);
    add_lines(w, 0, &(struct row_tensor){ { "k", "v" }, ST_BF16, w->columns }, w->n - first);
}

/* Group number i of `tokens` tokens of each head: of a token, or of a column, whose numbers are gathered in `line`. */
static const float *find_group(const struct encoder *w, bool channels, int64_t i, int64_t tokens, float *line)
{
    int64_t K = w->columns, group = w->kivi.group, of_line = (channels ? tokens : K) / group, at = i / of_line;
    const float *head = w->x + at / (channels ? K : tokens) * w->n * K;

    if (!channels)
        return head + at % tokens * K + i % of_line * group;
    for (int64_t j = 0; j < group; j++)
        line[j] = head[(i % of_line * group + j) * K + at % K];
    return line;
}

static void put_groups(struct encoder *w)
{
    const struct kivi_codes *kivi = &w->kivi;
    bool channels = w->side == EVICPRESS_KEYS && !kivi->keys_by_token;
    int64_t tokens = (w->side == EVICPRESS_KEYS ? kivi_keys : kivi_values)(kivi->residual, w->n);
    int64_t lines = channels ? w->columns : tokens, of_line = (channels ? tokens : w->columns) / kivi->group;
    int words = kivi->group * kivi->bits / 32;
    float line[ROW_COLUMNS];

    put_full(w, tokens);
    for (int64_t i = 0; i < w->heads * lines * of_line; i++)
        kivi_pack(find_group(w, channels, i, tokens, line),
                  &(struct kivi_group){ kivi->group, kivi->bits, (int32_t *)w->part[0] + i * words,
                                        (uint16_t *)w->part[1] + i, (uint16_t *)w->part[2] + i });
    add_lines(w, 0, &(struct row_tensor){ { "k_codes", "v_codes" }, ST_I32, (int)of_line * words }, lines);
    add_lines(w, 1, &(struct row_tensor){ { "k_scales", "v_scales" }, ST_F16, (int)of_line }, lines);
    add_lines(w, 2, &(struct row_tensor){ { "k_zeros", "v_zeros" }, ST_F16, (int)of_line }, lines);
}

/* A head's rows at x, which are used up; first what they share. */
static void pack_head(const struct encoder *w, const struct quant_row *row, const struct quant_at *head, float *x)
{
    float work[(QUANT_PARTS + 2) * ROW_COLUMNS] = { 0 };
    int K = w->columns;

    for (int64_t i = 0; i < (int64_t)w->n * K && quant_row_bytes(row).head; i++) {
        float *column = work + i / K % QUANT_PARTS * K + i % K;
        *column = quant_column(row, *column, x[i]);
    }
    if (quant_row_bytes(row).head)
        quant_head_pack(row, head->head, work);
    for (int i = 0; i < w->n; i++) {
        const struct quant_at at = quant_row_at(row, head, (size_t)i);
        memcpy(work, x + (size_t)i * (size_t)K, (size_t)K * sizeof(*work));
        quant_row_pack(row, &at, work);
    }
}

static void put_rows(struct encoder *w)
{
    struct quant_row row = w->pair.side[w->side];
    const struct quant_bytes bytes = quant_row_bytes(&row);
    const struct row_format f = row_format_of(&row);
    size_t n = (size_t)w->n, K = (size_t)w->columns;

    put_full(w, w->n);
    row.rotation = row.format == QUANT_LLOYD ? w->rotation : NULL;
    for (size_t g = 0; g < (size_t)w->heads; g++) {
        const struct quant_at at = { (uint8_t *)w->part[0] + g * n * bytes.codes,
                                     (char *)w->part[1] + g * n * bytes.scales, (char *)w->part[2] + g * bytes.head };
        pack_head(w, &row, &at, w->x + g * n * K);
    }
    add_lines(w, 0, &f.codes, w->n);
    if (f.scales.columns)
        add_lines(w, 1, &f.scales, w->n);
    if (f.head.columns)
        add_lines(w, 2, &f.head, 1);
}

static int put_streams(struct encoder *w, struct err *err)
{
    const struct cachegen_rows rows = {
        w->x, w->lengths, w->heads, w->columns, cachegen_steps((enum cachegen_side)w->side, w->layer), w->cdf, 1
    };
    const struct cachegen_counts all = cachegen_count(&rows, w->heads);
    struct cachegen_coded to = { NULL, w->part[0], w->part[1], w->part[2], 0 };

    if (cachegen_encode(&rows, &to, err))
        return err->code;
    const struct st_tensor t[] = { { NULL, ST_U8, 1, { (int64_t)to.bytes }, to.streams, 0, 0 },
                                   { NULL, ST_I32, 1, { all.streams / 2 }, to.sizes, 0, 0 },
                                   { NULL, ST_I32, 2, { all.cdfs, rows.steps }, to.cdfs, 0, 0 },
                                   { NULL, ST_BF16, 1, { w->n }, to.maxima, 0, 0 } };
    static const char *const name[][2] = {
        { "k_streams", "v_streams" }, { "k_sizes", "v_sizes" }, { "k_cdfs", "v_cdfs" }, { "k_maxima", "v_maxima" }
    };
    for (int i = 0; i < 4; i++)
        add(w, name[i], t[i]);
    free(to.streams);
    return 0;
}

static int put_side(struct encoder *w, struct err *err)
{
    load_side(w);
    if (w->coding == BY_STREAMS)
        return put_streams(w, err);
    if (w->coding == IN_FULL)
        put_full(w, 0);
    else
        (w->coding == BY_GROUPS ? put_groups : put_rows)(w);
    return 0;
}

static int put_layers(struct encoder *w, struct err *err)
{
    for (w->layer = 0; w->layer < w->e->n_layers; w->layer++) {
        for (w->side = 0; w->side < 2 && w->coding == BY_STREAMS; w->side++)
            put_full(w, w->n); // streams come after both
        for (w->side = 0; w->side < 2; w->side++)
            if (put_side(w, err))
                return err->code;
    }
    return buf_failed(&w->body) ? err_nomem(err) : 0;
}

/* ---- the file --------------------------------------------------------------------------- */

/* The checksums of all tensors, and of the heads of those that have head after head. */
static int sum_tensors(struct encoder *w, struct err *err)
{
    const char *at = w->body.at;
    size_t G = (size_t)w->heads;

    for (int i = 0; i < w->n_tensors; at += w->tensor[i++].bytes) {
        digest_xxh3_hex(at, w->tensor[i].bytes, w->checksum[i]);
        if (i == 0 || G == 1 || w->tensor[i].dim[0] != w->heads) /* tensor 0 is the tokens */
            continue;
        w->head_checksum[i] = malloc(G * (XXH3_HEX - 1) + 1);
        if (!w->head_checksum[i])
            return err_nomem(err);
        for (size_t g = 0, n = w->tensor[i].bytes / G; g < G; g++) /* each NUL is overwritten by the next one */
            digest_xxh3_hex(at + g * n, n, w->head_checksum[i] + g * (XXH3_HEX - 1));
    }
    return 0;
}

/* Puts the header before the body. */
static int put_header(struct encoder *w, struct err *err)
{
    char digest[DIGEST_HEX], *header = NULL;
    size_t n = 0;
    struct file_out out = { .f = open_memstream(&header, &n) };
    const struct payload_made made = {
        w->e->config,    w->e->model_digest,
        digest,          w->n,
        w->tensor,       w->checksum,
        w->n_tensors,    { "libevicpress " EVICPRESS_VERSION, w->e->model_name, w->e->cache, NULL, NULL },
        w->head_checksum
    };

    int code = !out.f ? err_nomem(err) : digest_tokens(w->e->tokens, w->n, digest, err);
    if (!code)
        code = payload_write_header(&out, &made, err);
    if (out.f && fclose(out.f) && !code)
        code = err_nomem(err);
    if (!code && !buf_reserve(&w->body, n))
        code = err_nomem(err);
    if (!code) {
        memmove(w->body.at + n, w->body.at, w->body.n);
        memcpy(w->body.at, header, n);
        w->body.n += n;
    }
    free(header);
    return code;
}

static int encoder_init(struct encoder *w, struct err *err)
{
    size_t columns = (size_t)w->heads * (size_t)w->columns, n = (size_t)w->n; /* a cdf takes 60 bytes, an outlier 1 */
    size_t room = 4 * columns * n + 64 * columns * (size_t)cachegen_chunks(w->n);

    w->x = malloc(columns * n * sizeof(*w->x));
    w->rotation = w->pair.rotated ? quant_rotation_new(&w->pair.side[0]) : NULL;
    for (int i = 0; i < PARTS; i++)
        w->part[i] = malloc(room);
    if (!w->x || !w->part[0] || !w->part[1] || !w->part[2] || (w->pair.rotated && !w->rotation))
        return err_nomem(err);
    for (int g = 0; g < w->heads; g++)
        w->lengths[g] = w->n;
    w->tensor[w->n_tensors] = payload_tokens(w->n);
    w->tensor[w->n_tensors++].bytes = n * sizeof(int32_t);
    buf_add(&w->body, w->e->tokens, n * sizeof(int32_t));
    return 0;
}

static void encoder_release(struct encoder *w)
{
    for (int i = 0; i < w->n_tensors; i++)
        free(w->head_checksum[i]);
    for (int i = 0; i < PARTS; i++)
        free(w->part[i]);
    free(w->rotation);
    free(w->x);
    buf_release(&w->body);
    free(w);
}

int evp_encode_rows(const struct evp_encode *e, void **payload, size_t *size, struct evp_error *error)
{
    struct err err;

    *payload = NULL;
    *size = 0;
    if (check(e, &err))
        return evp_error_from(error, &err, EVICPRESS_ARGUMENT);
    struct encoder *w = calloc(1, sizeof(*w));
    if (!w)
        return evp_error_set(error, EVICPRESS_MEMORY, "out of memory");
    w->e = e;
    w->heads = (int)e->n_heads;
    w->columns = (int)e->head_dim;
    w->n = (int)e->n_tokens;
    int code = find_coding(w, &err) || encoder_init(w, &err) || put_layers(w, &err) || sum_tensors(w, &err) ||
                       put_header(w, &err)
                   ? err.code
                   : 0;
    if (!code) {
        *size = w->body.n;
        *payload = buf_take(&w->body);
    }
    encoder_release(w);
    return code ? evp_error_from(error, &err, EVICPRESS_ARGUMENT) : EVICPRESS_OK;
}

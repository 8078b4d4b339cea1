/* evp_rows.c - rows of an open payload, decoded, in the caller's layout. What a layer holds follows from its tensors'
 * shapes, and, for quantisers, from the config; shapes that do not fit together are refused. */
#include "base/buf.h"
#include "base/json.h"
#include "codes/quant_rotation.h"
#include "codes/kivi_codes.h"
#include "codes/row_format.h"
#include "loader/libevicpress/evp_payload.h"
#include "loader/libevicpress/evp_streams.h"
#include "loader/libevicpress/row_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS_MAX = 1 << 12 };

/* ---- what a layer holds ------------------------------------------------------------- */

struct layer {
    int64_t number, heads, columns;
    int64_t place;           // with streams: its number among the layers with streams
    bool quantised, streams; // in groups; by cachegen
    struct kivi_codes kivi;
    enum cachegen_cdf cdf;
    bool by_rows; // quantised row by row
    struct quant_pair pair;
    int64_t whole;        // then: rows of each head after these that are kept in full
    int32_t n[HEADS_MAX]; // (heads) tokens that each head keeps
};

static const struct st_tensor *find_tensor(const struct evp_payload *p, int64_t layer, const char *what)
{
    char name[64];

    snprintf(name, sizeof(name), "layers.%lld.%s", (long long)layer, what);
    return safetensors_find(&payload_of(p)->st, name);
}

static int wrong_shape(const struct evp_payload *p, int64_t layer, struct err *err)
{
    return err_set(err, ERR_FORMAT, "'%s': the tensors of layer %lld are not those of config '%.80s'", p->file.path,
                   (long long)layer, payload_of(p)->config);
}

/* Reads the lengths of heads that differ. */
static int read_lengths(struct evp_payload *p, struct layer *l, const struct st_tensor *t, struct err *err)
{
    const struct extent all = { t, { 0, t->bytes }, EVICPRESS_VERIFY };

    if (t->type != ST_I32 || t->n_dims != 1 || t->dim[0] < 1 || t->dim[0] > HEADS_MAX)
        return wrong_shape(p, l->number, err);
    l->heads = t->dim[0];
    if (payload_read(p, &all, (char *)l->n, err))
        return err->code;
    for (int64_t g = 0; g < l->heads; g++)
        if (l->n[g] < 0 || l->n[g] > payload_of(p)->n_tokens)
            return wrong_shape(p, l->number, err);
    return 0;
}

static int read_layer(struct evp_payload *p, int64_t number, struct layer *l, struct err *err)
{
    const struct st_tensor *k = number >= 0 ? find_tensor(p, number, "k") : NULL;
    const struct st_tensor *lengths = k ? find_tensor(p, number, "lengths") : NULL;
    int n_dims = lengths ? 2 : 3;

    if (!k)
        return err_set(err, ERR_USAGE, "the payload has no layer %lld", (long long)number);
    *l = (struct layer){ .number = number, .columns = k->n_dims == n_dims ? k->dim[n_dims - 1] : 0 };
    l->quantised = kivi_codes_parse(&l->kivi, payload_of(p)->config);
    l->streams = cachegen_codes_parse(&l->cdf, payload_of(p)->config);
    if (l->columns < 1 || l->columns > ROW_COLUMNS || (l->quantised && l->columns % l->kivi.group))
        return wrong_shape(p, number, err);
    l->by_rows = row_format_parse(&l->pair, payload_of(p)->config, (int)l->columns);
    for (int64_t i = 0; l->streams && i < number; i++)
        l->place += find_tensor(p, i, "k_maxima") != NULL;
    if (lengths)
        return read_lengths(p, l, lengths, err);
    const struct st_tensor *codes = l->quantised || l->by_rows ? find_tensor(p, number, "k_codes") : NULL;
    const struct st_tensor *maxima = l->streams ? find_tensor(p, number, "k_maxima") : NULL;
    if (!codes && !maxima) // a layer with a window has rows alone
        l->quantised = l->streams = l->by_rows = false;
    int64_t n = k->dim[1];
    if (codes && codes->n_dims == 3)
        n += l->by_rows || l->kivi.keys_by_token ? codes->dim[1] : codes->dim[2] * 32 / l->kivi.bits;
    n += maxima && maxima->n_dims == 1 ? maxima->dim[0] : 0;
    l->whole = k->dim[1];
    if (k->dim[0] < 1 || k->dim[0] > HEADS_MAX || n > payload_of(p)->n_tokens)
        return wrong_shape(p, number, err);
    l->heads = k->dim[0];
    for (int64_t g = 0; g < l->heads; g++)
        l->n[g] = (int32_t)n;
    return 0;
}

/* Rows that callers may have: of a part of a context only its own. */
static int64_t rows_of(const struct evp_payload *p, const struct layer *l, int64_t head)
{
    return p->part && p->part < l->n[head] ? p->part : l->n[head];
}

/* ---- the bytes of one head ------------------------------------------------------------ */

enum kind { FULL, CODES, SCALES, ZEROS, HEAD, KINDS };

/* The tokens of a head that are codes. */
static int64_t n_codes(const struct layer *l, int side, int64_t head)
{
    if (l->by_rows)
        return l->n[head] - l->whole;
    if (!l->quantised)
        return l->streams ? l->n[head] : 0;
    return side == EVICPRESS_KEYS ? kivi_keys(l->kivi.residual, l->n[head]) : kivi_values(l->kivi.residual, l->n[head]);
}

static int64_t bytes_of(const struct layer *l, int side, enum kind kind, int64_t head)
{
    int64_t q = n_codes(l, side, head);

    if (kind == FULL)
        return (l->n[head] - q) * l->columns * 2;
    if (l->by_rows) {
        const struct quant_bytes bytes = quant_row_bytes(&l->pair.side[side]);
        return kind == HEAD ? (int64_t)bytes.head : q * (int64_t)(kind == CODES ? bytes.codes : bytes.scales);
    }
    return kind == CODES ? q * l->columns * l->kivi.bits / 8 : q * l->columns / l->kivi.group * 2;
}

/* A tensor of the layer, and where the head begins in it. */
struct head_bytes {
    const struct st_tensor *tensor;
    uint64_t first, n;
};

/* The tensor of a kind; NULL: it is not there, or has another type. */
static const struct st_tensor *find_kind(const struct evp_payload *p, const struct layer *l, int side, enum kind kind)
{
    static const char *const name[2][KINDS] = { { "k", "k_codes", "k_scales", "k_zeros" },
                                                { "v", "v_codes", "v_scales", "v_zeros" } };
    const struct row_format f = row_format_of(&l->pair.side[side]);
    const struct row_tensor *row = kind == CODES ? &f.codes : kind == HEAD ? &f.head : &f.scales;
    bool by_row = l->by_rows && kind != FULL;
    const enum st_type type = by_row ? row->type : kind == FULL ? ST_BF16 : kind == CODES ? ST_I32 : ST_F16;
    const struct st_tensor *t = find_tensor(p, l->number, by_row ? row->name[side] : name[side][kind]);

    return t && t->type == type ? t : NULL;
}

static int find_head(const struct evp_payload *p, const struct layer *l, const struct evp_rows *rows, enum kind kind,
                     struct head_bytes *head)
{
    const struct st_tensor *t = find_kind(p, l, rows->side, kind);
    uint64_t sum = 0;

    for (int64_t g = 0; g < l->heads; g++) {
        uint64_t n = (uint64_t)bytes_of(l, rows->side, kind, g);
        if (g == rows->first)
            *head = (struct head_bytes){ t, sum, n };
        sum += n;
    }
    return t && t->bytes == sum ? 0 : -1;
}

/* ---- reading ---------------------------------------------------------------------- */

/* One head's rows, [first_row, first_row + n_rows), on their way to the sink. */
struct job {
    struct evp_payload *p;
    const struct layer *layer;
    const struct evp_rows *rows; // of one head
    struct row_sink sink;
    uint64_t begin;         // the byte of the tensor with the first of the rows kept in full
    int64_t row;            // its row in the sink
    struct buf part[KINDS]; // codes of one head, by enum kind
    struct buf sizes;       // of the layer's streams
};

static int wrong_layer(const struct job *j, struct err *err)
{
    return wrong_shape(j->p, j->layer->number, err);
}

static void put_full(void *arg, uint64_t at, const char *bytes, size_t n)
{
    const struct job *j = arg;
    size_t row = (size_t)j->layer->columns * 2;

    row_sink_bf16(&j->sink, j->row + (int64_t)((at - j->begin) / row), (int64_t)(n / row), (const void *)bytes);
}

/* Does the sink have the rows as the payload does, one after another? */
static bool is_same(const struct row_sink *s)
{
    return s->type == EVICPRESS_BF16 && s->column_stride == 1 && s->row_stride == s->columns && !s->source;
}

/* Rows kept in full, from row `first` of the head on. */
static int read_full(struct job *j, int64_t first, int64_t n, struct err *err)
{
    uint64_t row = (uint64_t)j->layer->columns * 2, before = (uint64_t)n_codes(j->layer, j->rows->side, j->rows->first);
    struct head_bytes head;

    if (find_head(j->p, j->layer, j->rows, FULL, &head))
        return wrong_layer(j, err);
    j->begin = head.first + ((uint64_t)first - before) * row;
    j->row = first - j->rows->first_row;
    const struct extent at = { head.tensor, { j->begin, (uint64_t)n * row }, j->rows->verify };
    if (is_same(&j->sink))
        return payload_read(j->p, &at, j->sink.to + (size_t)j->row * row, err);
    const struct visitor to = { put_full, j, row };
    return payload_visit(j->p, &at, &to, err);
}

/* Lines of a tensor: `n` bytes from byte `first` of each. */
struct lines {
    int64_t n_lines, bytes, first, n;
};

/* Reads lines without gaps. */
static int read_lines(struct job *j, enum kind kind, const struct lines *lines, struct err *err)
{
    struct buf *to = &j->part[kind];
    struct lines l = *lines;
    struct head_bytes head;

    if (find_head(j->p, j->layer, j->rows, kind, &head) || (int64_t)head.n != l.n_lines * l.bytes)
        return wrong_layer(j, err);
    if (!buf_reserve(to, (size_t)(l.n_lines * l.n)))
        return err_nomem(err);
    if (l.n == l.bytes) { /* whole lines are adjacent */
        l.n = l.bytes = l.n_lines * l.bytes;
        l.n_lines = 1;
    }
    for (int64_t i = 0; i < l.n_lines; i++) {
        const struct extent at = { head.tensor,
                                   { head.first + (uint64_t)(i * l.bytes + l.first), (uint64_t)l.n },
                                   j->rows->verify };
        if (payload_read(j->p, &at, to->at + i * l.n, err))
            return err->code;
    }
    return 0;
}

/* By channel: [from, from + n) of the quantised tokens, whole groups; a line for each column. */
static int read_channels(struct job *j, int64_t from, int64_t n, struct err *err)
{
    const struct kivi_codes *kivi = &j->layer->kivi;
    int64_t q = n_codes(j->layer, EVICPRESS_KEYS, j->rows->first), K = j->layer->columns;
    const struct lines codes = { K, q * kivi->bits / 8, from * kivi->bits / 8, n * kivi->bits / 8 };
    const struct lines groups = { K, q / kivi->group * 2, from / kivi->group * 2, n / kivi->group * 2 };

    if (read_lines(j, CODES, &codes, err) || read_lines(j, SCALES, &groups, err) || read_lines(j, ZEROS, &groups, err))
        return err->code;
    return 0;
}

/* By token: the same; one line. */
static int read_tokens(struct job *j, int64_t from, int64_t n, struct err *err)
{
    const struct kivi_codes *kivi = &j->layer->kivi;
    int64_t q = n_codes(j->layer, j->rows->side, j->rows->first), K = j->layer->columns;
    int64_t code = K * kivi->bits / 8, group = K / kivi->group * 2;
    const struct lines codes = { 1, q * code, from * code, n * code };
    const struct lines groups = { 1, q * group, from * group, n * group };

    if (read_lines(j, CODES, &codes, err) || read_lines(j, SCALES, &groups, err) || read_lines(j, ZEROS, &groups, err))
        return err->code;
    return 0;
}

/* The payload's rotation: all its rows have the same. NULL: out of memory. */
static const float *rotation_of(struct evp_payload *p, const struct quant_row *row)
{
    float *old = atomic_load(&p->rotation), *mine = old ? NULL : quant_rotation_new(row);

    if (!mine || atomic_compare_exchange_strong(&p->rotation, &old, mine))
        return mine ? mine : old;
    free(mine); // another thread was faster
    return old;
}

/* Decodes rows [first, end) of a head that is quantised row by row. */
static int read_by_rows(struct job *j, int64_t first, int64_t end, struct err *err)
{
    struct quant_row row = j->layer->pair.side[j->rows->side];
    const struct quant_bytes bytes = quant_row_bytes(&row);
    int64_t all = n_codes(j->layer, j->rows->side, j->rows->first), n = end - first;
    int64_t codes = (int64_t)bytes.codes, scales = (int64_t)bytes.scales, head = (int64_t)bytes.head;

    if (read_lines(j, CODES, &(struct lines){ 1, all * codes, first * codes, n * codes }, err) ||
        (scales && read_lines(j, SCALES, &(struct lines){ 1, all * scales, first * scales, n * scales }, err)) ||
        (head && read_lines(j, HEAD, &(struct lines){ 1, head, 0, head }, err)))
        return err->code;
    if (j->layer->pair.rotated && row.format == QUANT_LLOYD)
        row.rotation = rotation_of(j->p, &row);
    if (j->layer->pair.rotated && row.format == QUANT_LLOYD && !row.rotation)
        return err_nomem(err);
    const enum kind second = scales ? SCALES : CODES; // without scales, an address to which nothing is added
    const struct quant_at at = { (uint8_t *)j->part[CODES].at, j->part[second].at, j->part[HEAD].at };
    row_sink_rows(&j->sink, &row, &at, &(struct row_span){ 0, n, first - j->rows->first_row });
    return 0;
}

/* Decodes rows [first, end) of a head that is quantised in groups. */
static int read_codes(struct job *j, int64_t first, int64_t end, struct err *err)
{
    bool channels = j->rows->side == EVICPRESS_KEYS && !j->layer->kivi.keys_by_token;
    int64_t group = j->layer->kivi.group, from = channels ? first / group * group : first;
    int64_t to = channels ? (end + group - 1) / group * group : end;
    const struct buf *part = j->part;

    if ((channels ? read_channels : read_tokens)(j, from, to - from, err))
        return err->code;
    const struct row_codes codes = {
        .bits = j->layer->kivi.bits,
        .group = (int)group,
        .n_rows = to - from,
        .codes = (const void *)part[CODES].at,
        .scales = (const void *)part[SCALES].at,
        .zeros = (const void *)part[ZEROS].at,
    };
    const struct row_span span = { first - from, end - first, first - j->rows->first_row };
    (channels ? row_sink_keys : row_sink_values)(&j->sink, &codes, &span);
    return 0;
}

/* The same of streams. */
static int read_streams(struct job *j, int64_t first, int64_t end, struct err *err)
{
    const struct layer *l = j->layer;
    const struct coded_head head = { .p = j->p,
                                     .layer = l->number,
                                     .place = l->place,
                                     .columns = l->columns,
                                     .heads = l->heads,
                                     .head = j->rows->first,
                                     .n = l->n,
                                     .side = j->rows->side,
                                     .verify = j->rows->verify,
                                     .cdf = l->cdf,
                                     .sizes = &j->sizes,
                                     .sink = &j->sink };

    return streams_read(&head, &(struct row_span){ first, end - first, first - j->rows->first_row }, err)
               ? err_wrap(err, "'%s'", j->p->file.path)
               : 0;
}

static int read_head(struct job *j, struct err *err)
{
    int64_t first = j->rows->first_row, end = first + j->rows->n_rows;
    int64_t codes = n_codes(j->layer, j->rows->side, j->rows->first), middle = end < codes ? end : codes;

    int (*const read_packed)(struct job *, int64_t, int64_t, struct err *) = j->layer->streams   ? read_streams
                                                                             : j->layer->by_rows ? read_by_rows
                                                                                                 : read_codes;
    if (first < middle && read_packed(j, first, middle, err))
        return err->code;
    middle = first > codes ? first : codes;
    return middle < end ? read_full(j, middle, end - middle, err) : 0;
}

/* ---- arguments --------------------------------------------------------------------- */

static int refuse(struct err *err, const char *what)
{
    return err_set(err, ERR_USAGE, "%s", what);
}

/* Which column of a row the buffer's columns get. */
static int pair_columns(const struct evp_payload *p, const struct layer *l, uint16_t *source, struct err *err)
{
    const char *text = evp_payload_text(p, "cache");
    struct json *cache = text ? json_parse(text, strlen(text), err) : NULL;
    int64_t dims = 0;
    bool known = cache && !json_want_int(json_get(cache, "rope"), "dims", &dims, err) && dims >= 0 &&
                 dims <= l->columns && dims % 2 == 0;

    json_free(cache);
    if (!known)
        return err_set(err, ERR_FORMAT, "'%s' does not say which columns are rotated", p->file.path);
    for (int64_t c = 0; c < l->columns; c++)
        source[c] = (uint16_t)(c >= dims ? c : c / 2 + c % 2 * (dims / 2));
    return 0;
}

/* The rows asked for, with all defaults. */
static int complete(const struct evp_payload *p, const struct layer *l, struct evp_rows *r, struct err *err)
{
    for (size_t i = 0; i < sizeof(r->reserved) / sizeof(*r->reserved); i++)
        if (r->reserved[i])
            return refuse(err, "reserved is not zero");
    if (r->verify != EVICPRESS_VERIFY && r->verify != EVICPRESS_TRUST)
        return refuse(err, "verify is out of range");
    if (r->pairs != 0 && r->pairs != 1)
        return refuse(err, "pairs is neither 0 nor 1");
    if ((r->side != EVICPRESS_KEYS && r->side != EVICPRESS_VALUES) || !row_type_bytes(r->type))
        return refuse(err, "side or type is out of range");
    if (r->first < 0 || r->first > l->heads || r->n < 0 || r->n > l->heads - r->first)
        return err_set(err, ERR_USAGE, "%lld heads from %lld on are not in 0 to %lld", (long long)r->n,
                       (long long)r->first, (long long)l->heads);
    r->n = r->n ? r->n : l->heads - r->first;
    for (int64_t g = r->first; g < r->first + r->n; g++) {
        int64_t n = rows_of(p, l, g);
        if (r->first_row < 0 || r->first_row > n || r->n_rows < 0 || r->n_rows > n - r->first_row)
            return err_set(err, ERR_USAGE, "%lld rows from %lld on are not in 0 to %lld", (long long)r->n_rows,
                           (long long)r->first_row, (long long)n);
        if (!r->n_rows && n != rows_of(p, l, r->first))
            return refuse(err, "the heads keep different numbers of rows: n_rows must say how many");
    }
    if (!r->n_rows && r->n)
        r->n_rows = rows_of(p, l, r->first) - r->first_row;
    return 0;
}

/* Sets the strides that are 0, and checks that all rows lie in the buffer. */
static int lay_out(const struct layer *l, struct evp_rows *r, size_t size, struct err *err)
{
    int64_t last = 0, part;

    if (r->head_stride < 0 || r->row_stride < 0 || r->column_stride < 0)
        return refuse(err, "a stride is negative");
    r->column_stride = r->column_stride ? r->column_stride : 1;
    r->row_stride = r->row_stride ? r->row_stride : l->columns;
    r->head_stride = r->head_stride ? r->head_stride : r->n_rows * l->columns;
    if (r->n == 0 || r->n_rows == 0)
        return 0;
    bool over =
        __builtin_mul_overflow(r->n - 1, r->head_stride, &last) ||
        __builtin_mul_overflow(r->n_rows - 1, r->row_stride, &part) || __builtin_add_overflow(last, part, &last) ||
        __builtin_mul_overflow(l->columns - 1, r->column_stride, &part) || __builtin_add_overflow(last, part, &last);
    return over || (uint64_t)last >= size / row_type_bytes(r->type) ? 1 : 0;
}

/* ---- calls ------------------------------------------------------------------------ */

static int fetch_rows(struct evp_payload *p, const struct evp_rows *asked, void *buffer, size_t size,
                      struct evp_error *error)
{
    struct evp_rows r = *asked;
    uint16_t source[ROW_COLUMNS];
    struct layer l;
    struct err err;

    int code = read_layer(p, r.layer, &l, &err);
    if (!code)
        code = complete(p, &l, &r, &err);
    if (!code)
        code = lay_out(&l, &r, size, &err);
    if (code > 0)
        return evp_error_set(error, EVICPRESS_SMALL, "the buffer is smaller than the rows");
    size_t bytes = row_type_bytes(r.type);
    if (!code && (uintptr_t)buffer % bytes)
        code = refuse(&err, "the buffer is not aligned for its type");
    bool pairs = r.pairs && r.side == EVICPRESS_KEYS;
    if (!code && pairs)
        code = pair_columns(p, &l, source, &err);
    const struct row_sink sink = { .type = r.type,
                                   .row_stride = r.row_stride,
                                   .column_stride = r.column_stride,
                                   .columns = (int)l.columns,
                                   .source = pairs ? source : NULL };
    struct job job = { .p = p, .layer = &l, .rows = &r, .sink = sink };
    job.sink.to = buffer;
    for (int64_t n = r.n; !code && n > 0 && r.n_rows > 0; n--, r.first++) {
        code = read_head(&job, &err);
        job.sink.to += (size_t)r.head_stride * bytes;
    }
    row_sink_end();
    for (int i = 0; i < KINDS; i++)
        buf_release(&job.part[i]);
    buf_release(&job.sizes);
    return code ? evp_error_from(error, &err, code == ERR_USAGE ? EVICPRESS_ARGUMENT : EVICPRESS_DAMAGED)
                : EVICPRESS_OK;
}

int evp_fetch_rows(struct evp_payload *payload, const struct evp_rows *rows, void *buffer, size_t size,
                   struct evp_error *error)
{
    return stats_count(payload->file.stats, "", 0, fetch_rows(payload, rows, buffer, size, error));
}

static int kept(struct evp_payload *p, int64_t layer, int64_t *rows, size_t n, struct evp_error *error)
{
    struct layer l;
    struct err err;

    int code = read_layer(p, layer, &l, &err);
    if (code)
        return evp_error_from(error, &err, code == ERR_USAGE ? EVICPRESS_ARGUMENT : EVICPRESS_DAMAGED);
    if ((uint64_t)l.heads > n)
        return evp_error_set(error, EVICPRESS_SMALL, "the layer has more heads");
    for (int64_t g = 0; g < l.heads; g++)
        rows[g] = rows_of(p, &l, g);
    return EVICPRESS_OK;
}

int evp_kept(struct evp_payload *payload, int64_t layer, int64_t *rows, size_t n, struct evp_error *error)
{
    return stats_count(payload->file.stats, "", 0, kept(payload, layer, rows, n, error));
}

static int payload_shape(struct evp_payload *p, struct evp_shape *shape, struct err *err)
{
    struct layer l;

    *shape = (struct evp_shape){ .n_tokens = p->part ? p->part : payload_of(p)->n_tokens };
    for (; find_tensor(p, shape->n_layers, "k"); shape->n_layers++) {
        if (read_layer(p, shape->n_layers, &l, err))
            return err->code;
        if (shape->n_layers == 0) {
            shape->n_heads = l.heads;
            shape->head_dim = l.columns;
            shape->n_rows = rows_of(p, &l, 0);
        }
        if (l.heads != shape->n_heads || l.columns != shape->head_dim)
            return wrong_shape(p, shape->n_layers, err);
        for (int64_t g = 0; g < l.heads; g++)
            if (rows_of(p, &l, g) != shape->n_rows)
                shape->n_rows = -1;
    }
    return 0;
}

int evp_payload_shape(struct evp_payload *payload, struct evp_shape *shape, struct evp_error *error)
{
    struct err err;
    int code = payload_shape(payload, shape, &err);

    return stats_count(payload->file.stats, "", 0,
                       code ? evp_error_from(error, &err, EVICPRESS_DAMAGED) : EVICPRESS_OK);
}

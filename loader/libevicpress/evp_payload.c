/* evp_payload.c - an open payload: where its tensors are, and ranges of them.
 *
 * Opening reads only the header. A checksum covers a head of a tensor, or, in files of earlier releases and where heads
 * differ in length, a whole tensor. So the first range of it reads all of it; after that it is known to be whole. If
 * the medium verifies every range itself, nothing is compared here.
 */
#include "loader/libevicpress/evp_payload.h"

#include "base/clock.h"
#include "formats/payload_prefix.h"
#include "loader/libevicpress/evp_find.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 18 }; // bytes to read at a time before they are summed, while they are in the cache

_Static_assert((int)ST_DIMS == sizeof(((struct evp_location *)0)->dim) / sizeof(int64_t), "dimensions fit");

/* ---- reading ------------------------------------------------------------------- */

/* Opens the file again by its name, under the same descriptor. The name may lead elsewhere by now. */
static bool reopen(const struct evp_payload *p)
{
    int fd = open(p->file.path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0)
        return false;
    bool same = !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size == p->size && st.st_uid == p->owner &&
                dup3(fd, p->file.blob.fd, O_CLOEXEC) >= 0;
    close(fd);
    return same;
}

static int read_bytes(const struct evp_payload *p, void *to, size_t n, uint64_t offset, struct err *err)
{
    int code = read_at(&p->file, to, n, offset, err);

    return code == ERR_STALE && reopen(p) ? read_at(&p->file, to, n, offset, err) : code;
}

/* Compares a unit of a tensor with its checksum. */
static int compare_sum(struct evp_payload *p, const struct st_tensor *t, uint64_t number, const char *hex,
                       struct err *err)
{
    const struct units *u = &p->unit[t - payload_of(p)->st.tensor];
    const char *want = u->heads ? u->heads + number * (XXH3_HEX - 1) : u->tensor;

    if (!want)
        return err_set(err, ERR_FORMAT, "'%s': tensor '%.80s' has no checksum", p->file.path, t->name);
    if (strncmp(want, hex, XXH3_HEX - 1) != 0)
        return err_set(err, ERR_FORMAT, "'%s': tensor '%.80s' has checksum %s, not %.16s: it is damaged", p->file.path,
                       t->name, hex, want);
    p->whole[u->first + number] = true;
    return 0;
}

/* Where bytes of a tensor go: to memory, or to a visitor by way of a chunk. */
struct place {
    char *to; // NULL: to the visitor
    const struct visitor *visitor;
    char *chunk;    // (n_chunk) NULL: not needed yet
    size_t n_chunk; // bytes to read at a time
    uint64_t first; // the byte of the tensor that goes to `to`
    struct bytes_range used;
};

static void deliver(const struct place *place, uint64_t at, const char *bytes, size_t n)
{
    if (place->to)
        memcpy(place->to + (at - place->first), bytes, n);
    else
        place->visitor->visit(place->visitor->arg, at, bytes, n);
}

/* Reads bytes of a tensor, and delivers those within place->used. sum: gets all of them; NULL: none. */
static int read_and_deliver(struct evp_payload *p, const struct extent *extent, struct place *place,
                            struct checksum *sum, struct err *err)
{
    const struct bytes_range *r = &extent->range, *used = &place->used;
    bool direct = place->to && used->n == r->n;

    if (!direct && !place->chunk && !(place->chunk = malloc(place->n_chunk)))
        return err_nomem(err);
    for (uint64_t at = r->first, end = r->first + r->n, n; at < end; at += n) {
        n = end - at < place->n_chunk ? end - at : place->n_chunk;
        char *bytes = direct ? place->to + (at - place->first) : place->chunk;
        if (read_bytes(p, bytes, (size_t)n, extent->tensor->offset + at, err))
            return err->code;
        if (sum)
            checksum_add(sum, bytes, (size_t)n);
        uint64_t low = at > used->first ? at : used->first, top = used->first + used->n;
        top = at + n < top ? at + n : top;
        if (!direct && low < top)
            deliver(place, low, bytes + (low - at), (size_t)(top - low));
    }
    return 0;
}

/* The same for a unit, which is compared with its checksum. */
static int read_unit(struct evp_payload *p, const struct extent *unit, struct place *place, struct err *err)
{
    struct checksum *sum = checksum_new(err);
    char hex[XXH3_HEX];

    if (!sum)
        return err->code;
    int code = read_and_deliver(p, unit, place, sum, err);
    checksum_end(sum, hex);
    return code ? code : compare_sum(p, unit->tensor, unit->range.first / unit->range.n, hex, err);
}

/* Reads unit by unit: one that has not passed its checksum yet whole. */
static int read_units(struct evp_payload *p, const struct extent *extent, struct place *place, struct err *err)
{
    const struct st_tensor *t = extent->tensor;
    const struct units *u = &p->unit[t - payload_of(p)->st.tensor];
    bool compared = extent->verify == EVICPRESS_VERIFY && !blob_verifies(&p->file.blob);
    uint64_t n = t->bytes / u->n, end = extent->range.first + extent->range.n;
    int code = 0;

    for (uint64_t at = extent->range.first, next; at < end && !code; at = next) {
        next = (at / n + 1) * n < end ? (at / n + 1) * n : end;
        const struct extent part = { t, { at, next - at }, extent->verify };
        const struct extent unit = { t, { at / n * n, n }, extent->verify };
        place->used = part.range;
        if (compared && (part.range.n == n || !p->whole[u->first + at / n]))
            code = read_unit(p, &unit, place, err);
        else
            code = read_and_deliver(p, &part, place, NULL, err);
    }
    return code;
}

int payload_read(struct evp_payload *p, const struct extent *extent, char *to, struct err *err)
{
    struct place place = { .to = to, .n_chunk = CHUNK, .first = extent->range.first };
    int code = read_units(p, extent, &place, err);

    free(place.chunk);
    return code;
}

int payload_visit(struct evp_payload *p, const struct extent *extent, const struct visitor *to, struct err *err)
{
    struct place place = { .visitor = to, .n_chunk = to->row < CHUNK ? CHUNK - CHUNK % to->row : to->row };
    int code = read_units(p, extent, &place, err);

    free(place.chunk);
    return code;
}

/* ---- opening ------------------------------------------------------------------- */

static int is_another(const struct evp_payload *p, struct err *err)
{
    return err_set(err, ERR_FORMAT, "'%s' is not the payload in the index: it is damaged", p->file.path);
}

/* Does the payload contain the found part? */
static int compare_part(const struct evp_payload *p, const struct evp_prefix *prefix, struct err *err)
{
    const struct payload *have = payload_of(p);
    const struct index_whole whole = prefix_found(prefix).whole;
    size_t n = (size_t)prefix->n_tokens * sizeof(int32_t);
    char digest[DIGEST_HEX] = "", *tokens;

    if (have->n_tokens != (int64_t)whole.n_tokens || prefix->n_tokens >= have->n_tokens ||
        payload_check_parts(have, err) || payload_header_bytes(have, p->size) != whole.header ||
        payload_part_bytes(p->size, whole.header, whole.n_tokens, (uint32_t)prefix->n_tokens) != prefix->size)
        return is_another(p, err);
    tokens = malloc(n);
    int code = tokens ? read_bytes(p, tokens, n, have->tokens->offset, err) : err_nomem(err);
    if (!code)
        code = digest_sha256(tokens, n, digest, err);
    free(tokens);
    return code || strcmp(digest, prefix->token_digest) == 0 ? code : is_another(p, err);
}

/* Does the header match the found prefix? */
static int compare_head(const struct evp_payload *p, const struct evp_prefix *prefix, struct err *err)
{
    const struct payload *have = payload_of(p);

    if (strcmp(have->config, prefix->config) != 0)
        return is_another(p, err);
    if (p->part)
        return compare_part(p, prefix, err);
    return have->n_tokens == prefix->n_tokens && strcmp(have->token_digest, prefix->token_digest) == 0
               ? 0
               : is_another(p, err);
}

/* Divides the tensors into what has a checksum of its own. */
static int find_units(struct evp_payload *p, struct err *err)
{
    const struct safetensors *st = &payload_of(p)->st;
    size_t n = 0;

    p->unit = calloc((size_t)st->n + 1, sizeof(*p->unit));
    if (!p->unit)
        return err_nomem(err);
    for (const struct json *sum = json_first(p->sums); sum; sum = json_next(sum)) {
        const struct st_tensor *t = safetensors_find(st, json_name(sum));
        if (t && !p->unit[t - st->tensor].tensor)
            p->unit[t - st->tensor].tensor = json_text(sum);
    }
    for (const struct json *sum = json_first(p->head_sums); sum; sum = json_next(sum)) {
        const struct st_tensor *t = safetensors_find(st, json_name(sum));
        if (t)
            p->unit[t - st->tensor].heads = payload_head_sum(sum, t);
    }
    for (int i = 0; i < st->n; i++) {
        p->unit[i].n = p->unit[i].heads ? (uint64_t)st->tensor[i].dim[0] : 1;
        p->unit[i].first = n;
        n += p->unit[i].n;
    }
    p->whole = calloc(n + 1, sizeof(*p->whole));
    return p->whole ? 0 : err_nomem(err);
}

int payload_begin(struct evp_payload *p, const struct evp_prefix *prefix, struct err *err)
{
    const struct found found = prefix_found(prefix);
    struct stat st;

    if (p->file.blob.fd >= 0 && !fstat(p->file.blob.fd, &st))
        p->owner = st.st_uid;
    p->part = found.whole.n_tokens ? prefix->n_tokens : 0;
    p->size = p->part ? found.size : prefix->size;
    if (blob_payload_open(&p->head, &p->file.blob, p->size, err))
        return err_wrap(err, "'%s'", p->file.path);
    stats_read(p->file.stats, p->file.tier, payload_header_bytes(payload_of(p), p->size), clock_now() - p->file.opened);
    p->file.opened = 0;
    if (compare_head(p, prefix, err))
        return err->code;
    p->sums = payload_sums(payload_of(p), err);
    p->head_sums = payload_head_sums(payload_of(p));
    return p->sums ? find_units(p, err) : err_wrap(err, "'%s'", p->file.path);
}

static int open_once(struct evp_payload **payload, struct evp_store *store, const struct evp_prefix *prefix,
                     struct evp_error *error)
{
    struct err err;

    *payload = NULL;
    struct evp_payload *p = calloc(1, sizeof(*p));
    if (!p)
        return evp_error_set(error, EVICPRESS_MEMORY, "out of memory");
    int code = prefix_open(store, prefix, &p->file, &err);
    stats_share(p->file.stats);
    if (code == PREFIX_GONE)
        code = prefix_gone(&p->file, error);
    else if (code || payload_begin(p, prefix, &err))
        code = evp_error_from(error, &err, EVICPRESS_DAMAGED);
    if (code)
        evp_payload_close(p);
    else
        *payload = p;
    return code;
}

int evp_payload_open(struct evp_payload **payload, struct evp_store *store, const struct evp_prefix *prefix,
                     struct evp_error *error)
{
    *payload = NULL;
    int code = prefix_check(prefix, error);
    if (!code)
        code = open_once(payload, store, prefix, error);
    if (prefix_renew(store, &code, error))
        code = open_once(payload, store, prefix, error);
    return stats_count(store->stats, "", 0, code);
}

void evp_payload_close(struct evp_payload *p)
{
    if (!p)
        return;
    blob_close(&p->file.blob);
    stats_drop(p->file.stats);
    blob_payload_close(&p->head);
    json_free(p->sums);
    json_free(p->head_sums);
    free(p->unit);
    free(p->whole);
    free(p->rotation);
    free(p);
}

/* ---- locations -------------------------------------------------------------------- */

static void locate(const struct evp_payload *p, const struct st_tensor *t, struct evp_location *l)
{
    const char *sum = p->unit[t - payload_of(p)->st.tensor].tensor;

    *l = (struct evp_location){ .fd = p->file.blob.fd, .n_dims = t->n_dims, .offset = t->offset, .size = t->bytes };
    memcpy(l->dim, t->dim, (size_t)t->n_dims * sizeof(*t->dim));
    snprintf(l->name, sizeof(l->name), "%s", t->name);
    snprintf(l->type, sizeof(l->type), "%s", st_type_name(t->type));
    snprintf(l->checksum, sizeof(l->checksum), "%.*s", XXH3_HEX - 1, sum ? sum : "");
}

static int unknown_tensor(struct evp_error *error, const char *name)
{
    struct err err;

    err_set(&err, ERR_FORMAT, "the payload has no tensor '%.80s'", name);
    return evp_error_set(error, EVICPRESS_UNKNOWN, err.msg);
}

int evp_locate(struct evp_payload *payload, const char *tensor, struct evp_location *location, struct evp_error *error)
{
    const struct st_tensor *t = tensor ? safetensors_find(&payload_of(payload)->st, tensor) : NULL;

    if (tensor && !t)
        return unknown_tensor(error, tensor);
    if (t)
        locate(payload, t, location);
    else
        *location = (struct evp_location){ .fd = payload->file.blob.fd, .size = payload->size };
    return EVICPRESS_OK;
}

int evp_locate_at(struct evp_payload *payload, size_t i, struct evp_location *location, struct evp_error *error)
{
    (void)error;
    if (i >= (size_t)payload_of(payload)->st.n)
        return 0;
    locate(payload, &payload_of(payload)->st.tensor[i], location);
    return 1;
}

const char *evp_payload_text(const struct evp_payload *payload, const char *name)
{
    return safetensors_meta(&payload_of(payload)->st, name);
}

/* ---- ranges ---------------------------------------------------------------------- */

/* A range in bytes: `n` slices of `bytes`, `stride` bytes from one to the next. */
struct slices {
    uint64_t first, n, bytes, stride;
};

/* Checks that [first, first + n) is within [0, dim); n 0: all from `first`. */
static int check_numbers(int64_t first, int64_t *n, int64_t dim, const char *what, struct err *err)
{
    if (first >= 0 && first <= dim && *n == 0)
        *n = dim - first;
    if (first < 0 || *n < 0 || first > dim || *n > dim - first)
        return err_set(err, ERR_FORMAT, "%lld %s from %lld on are not in 0 to %lld", (long long)*n, what,
                       (long long)first, (long long)dim);
    return 0;
}

/* part: limits the rows to this number, in the first dimension of the tokens and the second of other tensors; 0:
 * all. */
static int range_slices(const struct st_tensor *t, const struct evp_range *range, int64_t part, struct slices *p,
                        struct err *err)
{
    int64_t heads = t->n_dims > 0 ? t->dim[0] : 1, rows = t->n_dims > 1 ? t->dim[1] : 1;
    int64_t n = range->n, n_rows = range->n_rows;
    int64_t end = part && t->n_dims == 1 ? part : heads, end_row = part && t->n_dims > 1 ? part : rows;

    if (t->type == ST_OTHER && (range->first || n || range->first_row || n_rows))
        return err_set(err, ERR_FORMAT, "tensor '%.80s' has a type without ranges", t->name);
    if (check_numbers(range->first, &n, end, "heads", err) ||
        check_numbers(range->first_row, &n_rows, end_row, "rows", err))
        return err_wrap(err, "tensor '%.80s'", t->name);
    uint64_t head = heads ? t->bytes / (uint64_t)heads : 0, row = rows ? head / (uint64_t)rows : 0;
    *p = (struct slices){ .first = (uint64_t)range->first * head + (uint64_t)range->first_row * row,
                          .n = (uint64_t)n,
                          .bytes = (uint64_t)n_rows * row,
                          .stride = head };
    if (p->bytes == p->stride) { /* whole heads are adjacent */
        p->bytes *= p->n;
        p->n = p->bytes ? 1 : 0;
    }
    return 0;
}

/* first: the first slice. */
static int fetch_slices(struct evp_payload *p, const struct extent *first, const struct slices *slices, char *to,
                        struct err *err)
{
    struct extent extent = *first;

    for (uint64_t i = 0; i < slices->n; i++, to += slices->bytes, extent.range.first += slices->stride) {
        if (payload_read(p, &extent, to, err))
            return err->code;
    }
    return 0;
}

static int fetch_range(struct evp_payload *payload, const struct evp_range *range, void *buffer, size_t size,
                       struct evp_error *error)
{
    const struct st_tensor *t = range->tensor ? safetensors_find(&payload_of(payload)->st, range->tensor) : NULL;
    struct slices slices = { 0 };
    struct err err;

    if (!t)
        return unknown_tensor(error, range->tensor ? range->tensor : "");
    for (size_t i = 0; i < sizeof(range->reserved) / sizeof(*range->reserved); i++)
        if (range->reserved[i] || (range->verify != EVICPRESS_VERIFY && range->verify != EVICPRESS_TRUST))
            return evp_error_set(error, EVICPRESS_ARGUMENT, "reserved or verify is out of range");
    if (range_slices(t, range, payload->part, &slices, &err))
        return evp_error_from(error, &err, EVICPRESS_ARGUMENT);
    if (size < slices.n * slices.bytes)
        return evp_error_set(error, EVICPRESS_SMALL, "the buffer is smaller than the range");
    const struct extent first = { t, { slices.first, slices.bytes }, range->verify };
    int code = fetch_slices(payload, &first, &slices, buffer, &err);
    return code ? evp_error_from(error, &err, EVICPRESS_DAMAGED) : EVICPRESS_OK;
}

int evp_fetch_range(struct evp_payload *payload, const struct evp_range *range, void *buffer, size_t size,
                    struct evp_error *error)
{
    return stats_count(payload->file.stats, "", 0, fetch_range(payload, range, buffer, size, error));
}

/* ---- a part of a context -------------------------------------------------------------- */

/* Bytes of a tensor's rows in the part. */
static size_t part_bytes(const struct evp_payload *p, const struct st_tensor *t)
{
    return (size_t)(t->bytes / (uint64_t)payload_of(p)->n_tokens * (uint64_t)p->part);
}

/* Reads the tensors one after another, and computes their checksums. checksum: (st.n) */
static int fetch_tensors(struct evp_payload *p, int verify_them, char *to, char (*checksum)[XXH3_HEX],
                         struct evp_error *error)
{
    const struct safetensors *st = &payload_of(p)->st;

    for (int i = 0; i < st->n; i++) {
        const struct evp_range range = { .tensor = st->tensor[i].name, .verify = verify_them };
        size_t n = part_bytes(p, &st->tensor[i]);
        int code = fetch_range(p, &range, to, n, error);
        if (code)
            return code;
        digest_xxh3_hex(to, n, checksum[i]);
        to += n;
    }
    return EVICPRESS_OK;
}

static int fetch_part(struct evp_payload *p, int verify_it, const struct evp_prefix *prefix, char *to,
                      struct evp_error *error)
{
    const struct payload *whole = payload_of(p);
    struct payload_part part = { (int)p->part, prefix->token_digest, calloc((size_t)whole->st.n + 1, XXH3_HEX) };
    uint64_t header = payload_header_bytes(whole, p->size);
    struct buf text = { 0 };
    struct err err;

    if (!part.checksum)
        return evp_error_set(error, EVICPRESS_MEMORY, "out of memory");
    int code = fetch_tensors(p, verify_it, to + header, part.checksum, error);
    if (!code && payload_part_header(whole, p->size, &part, &text, &err))
        code = evp_error_from(error, &err, EVICPRESS_DAMAGED);
    if (!code)
        memcpy(to, text.at, text.n);
    buf_release(&text);
    free(part.checksum);
    return code;
}

int part_fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, struct evp_error *error)
{
    struct evp_payload *p;

    int code = open_once(&p, store, prefix, error);
    if (code)
        return code;
    code = fetch_part(p, store->verify, prefix, buffer, error);
    evp_payload_close(p);
    return code;
}

/* manifest.c - the rows of a manifest, read and kept; each is checked in one place: manifest_check().
 *
 * A million contexts must come and go in seconds: ids, configs and payload names live in the maps that prove them
 * unique, digests in large blocks, so that a row costs three small allocations and no copy of what it shares.
 */
#include "loader/formats/manifest_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- words -------------------------------------------------------------- */

static const char *const operation_names[] = {
    [OP_NONE] = "none", [OP_INSERT] = "insert", [OP_KEEP] = "keep", [OP_RECOMPRESS] = "recompress",
    [OP_MOVE] = "move", [OP_EVICT] = "evict",
};

const char *operation_name(enum operation op)
{
    return operation_names[op];
}

static int operation_find(const char *name, enum operation *op, struct err *err)
{
    for (int i = 0; i <= OP_EVICT; i++) {
        if (strcmp(name, operation_names[i]) != 0)
            continue;
        *op = (enum operation)i;
        return 0;
    }
    return err_set(err, ERR_FORMAT, "field 'operation' is '%.40s', not insert, keep, recompress, move, evict or none",
                   name);
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
}

bool manifest_payload_safe(const char *name)
{
    size_t n = 0;

    while (is_plain(name[n]))
        n++;
    return n > 0 && n < MANIFEST_PAYLOAD && name[n] == '\0' && name[0] != '.';
}

/* ---- what rows point to, in large blocks: a million rows are a few hundred allocations ------------------------ */

enum { BLOCK = 1 << 20, BLOCK_ALIGN = 8 };

struct manifest_block {
    struct manifest_block *older;
    size_t n;
    _Alignas(BLOCK_ALIGN) char at[BLOCK];
};

_Static_assert(VARIANTS_MAX * sizeof(struct variant_info) < BLOCK, "what is kept fits an empty block");

/* A copy that lives as long as the manifest; NULL without memory. */
static void *keep(struct manifest *m, const void *bytes, size_t n)
{
    struct manifest_block *b = m->block;
    size_t room = (n + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;

    if (!b || BLOCK - b->n < room) {
        b = malloc(sizeof(*b));
        if (!b)
            return NULL;
        b->older = m->block;
        b->n = 0;
        m->block = b;
    }
    char *to = b->at + b->n;
    memcpy(to, bytes, n);
    b->n += room;
    return to;
}

/* ---- rows --------------------------------------------------------------- */

int field_check_text(const char *field, const char *s, size_t room, struct err *err)
{
    if (!s || !*s)
        return err_set(err, ERR_FORMAT, "field '%s' is empty", field);
    if (strlen(s) >= room)
        return err_set(err, ERR_FORMAT, "field '%s' is longer than %zu bytes", field, room - 1);
    for (const char *c = s; *c; c++)
        if ((unsigned char)*c < 0x20)
            return err_set(err, ERR_FORMAT, "field '%s' has a control character", field);
    return 0;
}

int field_check_real(const char *field, double v, double least, struct err *err)
{
    if (!isfinite(v) || v < least)
        return err_set(err, ERR_FORMAT, "field '%s' is %s", field, isfinite(v) ? "below zero" : "not a number");
    return 0;
}

int field_check_bytes(const char *field, int64_t v, struct err *err)
{
    if (v < 0 || v > (int64_t)1 << 53)
        return err_set(err, ERR_FORMAT, "field '%s' is %s", field, v < 0 ? "below zero" : "above 2^53");
    return 0;
}

/* What is stored is one of the variants. */
static int check_variant(const struct placement *p, struct err *err)
{
    const struct variant_info *variant = variants_find(p->variants, p->config);

    if (!variant)
        return err_set(err, ERR_FORMAT, "field 'forms' lacks the config '%.80s' itself", p->config);
    if (variant->bytes != p->bytes || variant->quality != p->quality)
        return err_set(err, ERR_FORMAT, "field '%s' is not that of the form",
                       variant->bytes != p->bytes ? "bytes" : "quality");
    return 0;
}

static int check_stored(const struct placement *p, struct err *err)
{
    if (p->variants && check_variant(p, err))
        return err->code;
    if (!p->payload || !manifest_payload_safe(p->payload))
        return err_set(err, ERR_FORMAT, "field 'payload' is %s", p->payload ? "no plain file name" : "missing");
    if (p->operation == OP_EVICT || p->operation == OP_NONE)
        return err_set(err, ERR_FORMAT, "operation '%s' for a context that is placed on a tier",
                       operation_name(p->operation));
    return 0;
}

static int check_recomputed(const struct placement *p, struct err *err)
{
    if (p->payload || p->bytes != 0 || strcmp(p->config, "none") != 0)
        return err_set(err, ERR_FORMAT, "tier 'recompute' holds nothing, but the row has %s",
                       p->payload ? "a payload"
                       : p->bytes ? "a size"
                                  : "a config");
    if (p->operation != OP_EVICT && p->operation != OP_NONE)
        return err_set(err, ERR_FORMAT, "operation '%s' for a context that is recomputed",
                       operation_name(p->operation));
    return 0;
}

int manifest_check_row(const struct manifest *m, const struct placement *p, struct err *err)
{
    if (field_check_text("id", p->id, MANIFEST_ID, err) || field_check_text("config", p->config, MANIFEST_CONFIG, err))
        return err->code;
    if (!p->token_digest || !digest_is_hex(p->token_digest))
        return err_set(err, ERR_FORMAT, "field 'token_digest' is not 64 lower-case hex digits");
    if (p->n_tokens < 1 || p->n_tokens > INT32_MAX)
        return err_set(err, ERR_FORMAT, "field 'n_tokens' is out of range");
    if (p->tier < -1 || p->tier >= m->tiers.n)
        return err_set(err, ERR_FORMAT, "field 'tier' is out of range");
    if (field_check_bytes("bytes", p->bytes, err) || field_check_bytes("kv_bytes", p->kv_bytes, err))
        return err->code;
    if (field_check_real("quality", p->quality, 0, err) || field_check_real("utility", p->utility, -HUGE_VAL, err) ||
        (!isnan(p->ttft_s) && field_check_real("ttft_s", p->ttft_s, 0, err)) ||
        field_check_real("frequency", p->frequency, 0, err))
        return err->code;
    if (p->quality > 1)
        return err_set(err, ERR_FORMAT, "field 'quality' is above one");
    if (p->variants && variants_check(p->variants, &m->tiers, err))
        return err->code;
    return p->tier < 0 ? check_recomputed(p, err) : check_stored(p, err);
}

static int grow(struct manifest *m, struct err *err)
{
    if (m->n < m->room)
        return 0;
    int room = m->room ? 2 * m->room : 64;
    struct placement *at = room > m->room ? realloc(m->at, (size_t)room * sizeof(*at)) : NULL;
    if (!at)
        return err_nomem(err);
    m->at = at;
    m->room = room;
    return 0;
}

/* Keeps s in a map of the manifest; the copy lives as long as the manifest. */
static int keep_once(struct map *map, const char *s, const char **kept, bool *added, struct err *err)
{
    int i = map_add(map, s, strlen(s), added);

    if (i < 0)
        return err_nomem(err);
    *kept = map->entry[i].key;
    return 0;
}

/* Copies *variants, whose checks are done, into the manifest. */
static int keep_variants(struct manifest *m, const struct variants **variants, struct err *err)
{
    struct variants f = **variants;
    struct variant_info *variant = keep(m, f.n ? (const void *)f.at : "", (size_t)f.n * sizeof(*variant));

    if (!variant)
        return err_nomem(err);
    for (int i = 0; i < f.n; i++)
        if (keep_once(&m->configs, variant[i].config, &variant[i].config, NULL, err))
            return err->code;
    f.at = variant;
    if (f.pin)
        f.pin = strcmp(f.pin, "recompute") == 0 ? "recompute" : m->tiers.at[tiers_find(&m->tiers, f.pin)].name;
    *variants = keep(m, &f, sizeof(f));
    return *variants ? 0 : err_nomem(err);
}

int manifest_add(struct manifest *m, const struct placement *p, struct err *err)
{
    struct placement row = *p;
    bool added;

    if (manifest_check_row(m, p, err) || grow(m, err))
        return err->code;
    if (map_find(&m->ids, p->id, strlen(p->id)) >= 0)
        return err_set(err, ERR_FORMAT, "id '%.80s' comes twice", p->id);
    if (p->payload) {
        if (keep_once(&m->payloads, p->payload, &row.payload, &added, err))
            return err->code;
        if (!added)
            return err_set(err, ERR_FORMAT, "payload '%.80s' comes twice", p->payload);
    }
    if (keep_once(&m->configs, p->config, &row.config, NULL, err) || keep_once(&m->ids, p->id, &row.id, NULL, err))
        return err->code;
    if (row.variants && keep_variants(m, &row.variants, err))
        return err->code;
    row.token_digest = keep(m, p->token_digest, DIGEST_HEX);
    if (!row.token_digest)
        return err_nomem(err);
    m->at[m->n++] = row;
    return 0;
}

struct placement manifest_eviction(const struct placement *before)
{
    return (struct placement){
        .id = before->id,
        .token_digest = before->token_digest,
        .config = "none",
        .tier = -1,
        .n_tokens = before->n_tokens,
        .kv_bytes = before->kv_bytes,
        .quality = 1,
        .quality_test = (double)NAN,
        .ttft_s = (double)NAN,
        .operation = OP_EVICT,
    };
}

void manifest_release(struct manifest *m)
{
    for (struct manifest_block *b = m->block, *older; b; b = older) {
        older = b->older;
        free(b);
    }
    free(m->at);
    free(m->header);
    map_release(&m->ids);
    map_release(&m->configs);
    map_release(&m->payloads);
    tiers_release(&m->tiers);
    *m = (struct manifest){ 0 };
}

const struct placement *manifest_find(const struct manifest *m, const char *id)
{
    int i = map_find(&m->ids, id, strlen(id));

    return i < 0 ? NULL : &m->at[i];
}

/* ---- reading ------------------------------------------------------------ */

static int read_digest(const struct json *header, const char *name, char out[DIGEST_HEX], struct err *err)
{
    const char *hex = "";

    if (json_may_text(header, name, &hex, err))
        return err->code;
    if (*hex && !digest_is_hex(hex))
        return err_set(err, ERR_FORMAT, "field '%s' is not 64 lower-case hex digits", name);
    memcpy(out, hex, *hex ? DIGEST_HEX : 1);
    return 0;
}

/* The totals are for people: a header without them is fine. */
static int read_totals(struct manifest *m, const struct json *totals, struct err *err)
{
    if (json_count(totals) > MANIFEST_TOTALS)
        return err_set(err, ERR_FORMAT, "field 'totals' has more than %d members", MANIFEST_TOTALS);
    for (const struct json *j = json_first(totals); j; j = json_next(j)) {
        struct manifest_total *t = &m->total[m->n_totals++];
        const char *name;
        t->ttft_s = t->quality = t->quality_test = (double)NAN;
        if (json_want_text(j, "name", &name, err) || field_check_text("name", name, sizeof(t->name), err) ||
            json_want_real(j, "utility", &t->utility, err) || json_may_real(j, "ttft_s", &t->ttft_s, err) ||
            json_may_real(j, "quality", &t->quality, err) || json_may_real(j, "quality_test", &t->quality_test, err))
            return err->code;
        memcpy(t->name, name, strlen(name) + 1);
    }
    return 0;
}

static int read_prices(struct manifest *m, const struct json *prices, struct err *err)
{
    int t = 0;

    if (prices && json_count(prices) != m->tiers.n)
        return err_set(err, ERR_FORMAT, "field 'prices' has %d members for %d tiers", json_count(prices), m->tiers.n);
    for (const struct json *j = json_first(prices); j; j = json_next(j)) {
        m->price[t] = json_real(j);
        if (!(m->price[t] >= 0 && m->price[t] <= 1e300))
            return err_set(err, ERR_FORMAT, "field 'prices' holds something that is not a price");
        t++;
    }
    return 0;
}

static int read_header(struct manifest *m, const struct json *header, struct err *err)
{
    const char *solver;

    m->upper_bound = m->gap = m->gain_gap = (double)NAN;
    m->max_move = INT64_MAX;
    if (read_digest(header, "model_digest", m->model_digest, err) ||
        read_digest(header, "table_digest", m->table_digest, err) ||
        read_digest(header, "previous", m->previous, err) || json_want_real(header, "alpha", &m->alpha, err) ||
        json_want_text(header, "solver", &solver, err) || json_want_real(header, "objective", &m->objective, err) ||
        json_may_real(header, "upper_bound", &m->upper_bound, err) || json_may_real(header, "gap", &m->gap, err) ||
        json_may_real(header, "gain_gap", &m->gain_gap, err) ||
        json_may_real(header, "move_cost", &m->move_cost, err) ||
        json_may_real(header, "move_price", &m->move_price, err) ||
        json_may_real(header, "min_quality", &m->min_quality, err) ||
        json_may_int(header, "max_move", &m->max_move, err) ||
        field_check_text("solver", solver, sizeof(m->solver), err) || read_totals(m, json_get(header, "totals"), err))
        return err->code;
    memcpy(m->solver, solver, strlen(solver) + 1);
    if (!json_is_array(json_get(header, "tiers")))
        return err_set(err, ERR_FORMAT, "field 'tiers' is not an array");
    if (tiers_from_json(&m->tiers, json_get(header, "tiers"), err) ||
        field_check_real("min_quality", m->min_quality, 0, err))
        return err->code;
    return read_prices(m, json_get(header, "prices"), err);
}

static int read_tier(const struct manifest *m, const char *name, int *tier, struct err *err)
{
    *tier = -1;
    if (strcmp(name, "recompute") == 0)
        return 0;
    *tier = tiers_find(&m->tiers, name);
    return *tier < 0 ? err_set(err, ERR_FORMAT, "tier '%.40s' is not in the header", name) : 0;
}

static int read_row(struct manifest *m, const struct json *row, struct err *err)
{
    struct placement p = { .quality_test = (double)NAN, .ttft_s = (double)NAN };
    const char *tier, *operation;
    struct variant_info variant[VARIANTS_MAX];
    struct variants variants;

    if (json_get(row, "forms")) {
        if (variants_from_json(&variants, variant, row, err))
            return err->code;
        p.variants = &variants;
    }
    if (json_want_text(row, "id", &p.id, err) || json_want_text(row, "token_digest", &p.token_digest, err) ||
        json_want_int(row, "n_tokens", &p.n_tokens, err) || json_want_text(row, "config", &p.config, err) ||
        json_want_text(row, "tier", &tier, err) || json_want_int(row, "bytes", &p.bytes, err) ||
        json_want_real(row, "quality", &p.quality, err) || json_may_real(row, "quality_test", &p.quality_test, err) ||
        json_may_real(row, "ttft_s", &p.ttft_s, err) || json_may_int(row, "kv_bytes", &p.kv_bytes, err) ||
        json_want_real(row, "utility", &p.utility, err) || json_want_real(row, "frequency", &p.frequency, err) ||
        json_want_text(row, "operation", &operation, err) || json_may_text(row, "payload", &p.payload, err) ||
        read_tier(m, tier, &p.tier, err) || operation_find(operation, &p.operation, err))
        return err->code;
    return manifest_add(m, &p, err);
}

static int take_header(struct manifest *m, const struct rows_in *in, struct err *err)
{
    if (!in->header)
        return err_set(err, ERR_FORMAT, "%s is no manifest: it has no header", in->path);
    m->header = strdup(in->line);
    if (!m->header)
        return err_nomem(err);
    return read_header(m, in->header, err) ? err_wrap(err, "%s line 1", in->path) : 0;
}

static int read_rows(struct manifest *m, struct rows_in *in, struct err *err)
{
    struct json *row;
    int got;

    if (take_header(m, in, err))
        return err->code;
    while ((got = rows_next(in, &row, err)) > 0) {
        int code = read_row(m, row, err);
        json_free(row);
        if (code)
            return rows_wrap(in, err);
    }
    if (!got && !m->n)
        return err_set(err, ERR_FORMAT, "%s holds no contexts", in->path);
    return got;
}

int manifest_read(struct manifest *m, const char *path, struct err *err)
{
    struct rows_in in = { 0 };
    struct digest *digest = digest_new(err);

    *m = (struct manifest){ 0 };
    if (!digest)
        return err->code;
    int code = rows_open_hashed(&in, path, "manifest", digest, err);
    if (!code)
        code = read_rows(m, &in, err);
    rows_close(&in);
    digest_end(digest, m->digest);
    if (code)
        manifest_release(m);
    return code;
}

int manifest_read_bytes(struct manifest *m, const struct rows_bytes *bytes, struct err *err)
{
    struct rows_in in;

    *m = (struct manifest){ 0 };
    if (rows_open_bytes(&in, bytes, "manifest", err))
        return err->code;
    int code = read_rows(m, &in, err);
    rows_close(&in);
    if (code)
        manifest_release(m);
    return code;
}

int manifest_read_header(struct manifest *m, const char *path, struct err *err)
{
    struct rows_in in;

    *m = (struct manifest){ 0 };
    if (rows_open(&in, path, "manifest", err))
        return err->code;
    int code = take_header(m, &in, err);
    rows_close(&in);
    if (code)
        manifest_release(m);
    return code;
}

/* ---- operations and names ------------------------------------------------ */

enum operation manifest_operation(const struct placement *before, const struct tiers *tiers_before,
                                  const struct placement *after, const struct tiers *tiers_after)
{
    bool was = before && before->tier >= 0, is = after && after->tier >= 0;

    if (!was || !is)
        return was ? OP_EVICT : is ? OP_INSERT : OP_NONE;
    if (strcmp(before->config, after->config) != 0 || strcmp(before->token_digest, after->token_digest) != 0)
        return OP_RECOMPRESS;
    const struct tier *from = &tiers_before->at[before->tier], *to = &tiers_after->at[after->tier];
    return from->kind == to->kind && strcmp(from->uri, to->uri) == 0 ? OP_KEEP : OP_MOVE;
}

/* Adds at most 48 bytes of s that are fit for a file name; anything else becomes an underscore. */
static void add_slug(struct buf *b, const char *s)
{
    for (int i = 0; s[i] && i < 48; i++)
        buf_addc(b, is_plain(s[i]) && (s[i] != '.' || b->n > 0) ? s[i] : '_');
}

void manifest_put_payload_name(struct buf *name, const char *id, const char *token_digest, const char *config)
{
    char hex[XXH3_HEX];

    buf_clear(name);
    buf_add(name, id, strlen(id) + 1);
    buf_add(name, token_digest, strlen(token_digest) + 1);
    buf_adds(name, config);
    digest_xxh3_hex(buf_str(name), name->n, hex);
    buf_clear(name);
    add_slug(name, id);
    buf_addc(name, '-');
    add_slug(name, config);
    buf_addc(name, '-');
    buf_adds(name, hex);
    buf_adds(name, ".safetensors");
}

char *manifest_payload_name(const char *id, const char *token_digest, const char *config)
{
    struct buf name = { 0 };

    manifest_put_payload_name(&name, id, token_digest, config);
    return buf_take(&name);
}

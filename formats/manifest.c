/* manifest.c - the rows of a manifest, checked and kept: manifest_check_row() says what a row may be.
 *
 * A million rows must be read and released in seconds. The maps that check uniqueness hold the ids, configs and payload
 * names; large blocks hold digests and variants. So a row needs no allocation of its own, and shared data is kept once.
 */
#include "formats/manifest.h"

#include "base/array.h"
#include "base/unconst.h"
#include "formats/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- payload names ------------------------------------------------------- */

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

bool manifest_payload_safe(const char *name)
{
    size_t n = strspn(name, plain);

    return n > 0 && n < MANIFEST_PAYLOAD && name[n] == '\0' && name[0] != '.';
}

static const char suffix[] = ".safetensors";

bool manifest_payload_made(const char *name)
{
    size_t n = strlen(name), end = XXH3_HEX - 1 + sizeof(suffix) - 1;

    return manifest_payload_safe(name) && n > end && name[n - end - 1] == '-' &&
           strspn(name + n - end, "0123456789abcdef") == XXH3_HEX - 1 &&
           strcmp(name + n - sizeof(suffix) + 1, suffix) == 0;
}

/* Adds the first 48 bytes of s; a byte unfit for a file name becomes an underscore. */
static void add_slug(struct buf *b, const char *s)
{
    char slug[48];
    size_t n = 0;

    for (; s[n] && n < sizeof(slug); n++)
        slug[n] = strchr(plain, s[n]) && (s[n] != '.' || b->n + n > 0) ? s[n] : '_';
    buf_add(b, slug, n);
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
    buf_adds(name, suffix);
}

char *manifest_payload_name(const char *id, const char *token_digest, const char *config)
{
    struct buf name = { 0 };

    manifest_put_payload_name(&name, id, token_digest, config);
    return buf_take(&name);
}

/* ---- the data of rows, in large blocks: a few thousand allocations for a million rows ------------------------- */

enum { BLOCK = 64 << 10, BLOCK_ALIGN = 8 };

struct manifest_block {
    struct manifest_block *older;
    size_t n;
    _Alignas(BLOCK_ALIGN) char at[BLOCK];
};

_Static_assert(VARIANTS_MAX * sizeof(struct variant_info) < BLOCK, "all variants of a row fit one block");

/* Copies n bytes into the newest of a list of blocks; NULL without memory. */
static void *keep(struct manifest_block **to, const void *bytes, size_t n)
{
    struct manifest_block *b = *to;
    size_t taken = (n + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;

    if (!b || BLOCK - b->n < taken) {
        b = malloc(sizeof(*b));
        if (!b)
            return NULL;
        b->older = *to;
        b->n = 0;
        *to = b;
    }
    char *copy = b->at + b->n;
    memcpy(copy, bytes, n);
    b->n += taken;
    return copy;
}

static void blocks_free(struct manifest_block *list)
{
    for (struct manifest_block *older; list; list = older) {
        older = list->older;
        free(list);
    }
}

/* ---- rows --------------------------------------------------------------- */

/* The stored variant must be one of those that the row carries. */
static int check_variant(const struct placement *p, struct err *err)
{
    const struct variant_info *variant = variants_find(p->variants, p->config);

    if (!variant)
        return err_set(err, ERR_FORMAT, "field 'forms' lacks config '%.80s', which is stored", p->config);
    if (variant->bytes != p->bytes || variant->quality != p->quality)
        return err_set(err, ERR_FORMAT, "field '%s' differs from the variant's in 'forms'",
                       variant->bytes != p->bytes ? "bytes" : "quality");
    return 0;
}

static int check_stored(const struct placement *p, struct err *err)
{
    if (p->variants && check_variant(p, err))
        return err->code;
    if (!p->payload || !manifest_payload_safe(p->payload))
        return err_set(err, ERR_FORMAT, "field 'payload' is %s", p->payload ? "not a plain file name" : "missing");
    if (p->operation == OP_EVICT || p->operation == OP_NONE)
        return err_set(err, ERR_FORMAT, "operation '%s' for a context that is placed on a tier",
                       operation_name(p->operation));
    return 0;
}

static int check_recomputed(const struct placement *p, struct err *err)
{
    if (p->payload || p->bytes != 0 || strcmp(p->config, "none") != 0)
        return err_set(err, ERR_FORMAT, "tier 'recompute' stores nothing, but the row has %s",
                       p->payload ? "a payload"
                       : p->bytes ? "a size"
                                  : "a config");
    if (p->operation != OP_EVICT && p->operation != OP_NONE)
        return err_set(err, ERR_FORMAT, "operation '%s' for a context that is recomputed",
                       operation_name(p->operation));
    return 0;
}

int manifest_check_context(const struct manifest_context *c, const struct tiers *tiers, struct err *err)
{
    if (field_check_utf8("id", c->id, MANIFEST_ID, err) || field_check_digest("token_digest", c->token_digest, err) ||
        field_check_tokens("n_tokens", c->n_tokens, err) || field_check_bytes("kv_bytes", c->kv_bytes, err) ||
        field_check_real("frequency", c->frequency, 0, err))
        return err->code;
    return c->variants ? variants_check(c->variants, tiers, err) : 0;
}

int manifest_check_row(const struct manifest *m, const struct placement *p, struct err *err)
{
    struct manifest_context c = { p->id, p->token_digest, p->n_tokens, p->kv_bytes, p->frequency, p->variants };

    if (manifest_check_context(&c, &m->tiers, err) || field_check_text("config", p->config, MANIFEST_CONFIG, err))
        return err->code;
    if (p->tier < -1 || p->tier >= m->tiers.n)
        return err_set(err, ERR_FORMAT, "field 'tier' is out of range");
    if (field_check_bytes("bytes", p->bytes, err) || field_check_real("quality", p->quality, 0, err) ||
        field_check_real("quality_sd", p->quality_sd, 0, err) ||
        field_check_real("utility", p->utility, -HUGE_VAL, err) ||
        (!isnan(p->ttft_s) && field_check_real("ttft_s", p->ttft_s, 0, err)))
        return err->code;
    if (p->quality > 1)
        return err_set(err, ERR_FORMAT, "field 'quality' is above one");
    return p->tier < 0 ? check_recomputed(p, err) : check_stored(p, err);
}

/* Keeps one copy of s in a map, which owns it. *added: s is new. */
static int keep_once(struct map *map, const char *s, const char **kept, bool *added, struct err *err)
{
    int i = map_add(map, s, strlen(s), added);

    if (i < 0)
        return err_nomem(err);
    *kept = map->at[i].key;
    return 0;
}

/* Copies checked variants; NULL without memory. */
static const struct variants *keep_variants(struct manifest_block **to, const struct tiers *tiers,
                                            const struct variants *variants)
{
    struct variants f = *variants;

    f.at = keep(to, f.n ? (const void *)f.at : "", (size_t)f.n * sizeof(*f.at));
    if (f.pin)
        f.pin = strcmp(f.pin, "recompute") == 0 ? "recompute" : tiers->at[tiers_find(tiers, f.pin)].name;
    return f.at ? keep(to, &f, sizeof(f)) : NULL;
}

/* Copies a row's digest and variants, but no texts. */
static int keep_row(struct manifest *m, struct placement *row, struct err *err)
{
    bool carries = row->variants;

    row->token_digest = keep(&m->block, row->token_digest, DIGEST_HEX);
    row->variants = carries ? keep_variants(&m->block, &m->tiers, row->variants) : NULL;
    return row->token_digest && carries == (row->variants != NULL) ? 0 : err_nomem(err);
}

int manifest_list_config(struct manifest *m, const char *config, struct err *err)
{
    const char *kept;

    m->online = true;
    return keep_once(&m->configs, config, &kept, NULL, err);
}

/* Replaces the configs of the manifest's own variants by shared copies. */
static int keep_configs(struct manifest *m, const struct variants *f, struct err *err)
{
    struct variant_info *variant = unconst(f->at);

    for (int i = 0; i < f->n; i++)
        if (keep_once(&m->configs, variant[i].config, &variant[i].config, NULL, err))
            return err->code;
    return 0;
}

/* Adds a checked row whose digest and variants the manifest already owns; its texts are copied. */
static int take_row(struct manifest *m, const struct placement *p, struct err *err)
{
    struct placement row = *p;
    bool added;

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
    if (row.variants && !m->list.at && keep_configs(m, row.variants, err))
        return err->code;
    m->online = m->online || row.variants;
    return ARRAY_PUSH(m, row) ? err_nomem(err) : 0;
}

int manifest_add(struct manifest *m, const struct placement *p, struct err *err)
{
    struct placement row = *p;

    if (manifest_check_row(m, p, err) || keep_row(m, &row, err))
        return err->code;
    return take_row(m, &row, err);
}

struct cached manifest_cached(const struct tiers *tiers, const struct placement *p)
{
    if (!p || p->tier < 0)
        return (struct cached){ 0 };
    return (struct cached){
        .token_digest = p->token_digest, .config = p->config, .bytes = -1, .tier = &tiers->at[p->tier]
    };
}

const struct placement *manifest_gone(const struct manifest *before, const struct map *now, int *i)
{
    for (; *i < before->n; ++*i) {
        const struct placement *p = &before->at[*i];
        if (p->tier >= 0 && map_find(now, p->id, strlen(p->id)) == MAP_ABSENT)
            return p;
    }
    return NULL;
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
    blocks_free(m->block);
    free(m->at);
    free(m->header);
    free(m->list.at);
    map_release(&m->ids);
    map_release(&m->configs);
    map_release(&m->payloads);
    if (!m->borrows)
        tiers_release(&m->tiers);
    *m = (struct manifest){ 0 };
}

const struct placement *manifest_find(const struct manifest *m, const char *id)
{
    int i = map_find(&m->ids, id, strlen(id));

    return i < 0 ? NULL : &m->at[i];
}

/* ---- the order of rows ---------------------------------------------------- */

/* An id and its number. */
struct key {
    const char *id;
    int number;
};

static int by_id(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    return strcmp(x->id, y->id);
}

int manifest_order(int *order, const char *const *id, int n, struct err *err)
{
    struct key *key = calloc((size_t)n + 1, sizeof(*key));

    if (!key)
        return err_nomem(err);
    for (int i = 0; i < n; i++)
        key[i] = (struct key){ id[i], i };
    qsort(key, (size_t)n, sizeof(*key), by_id);
    for (int i = 0; i < n; i++)
        order[i] = key[i].number;
    free(key);
    return 0;
}

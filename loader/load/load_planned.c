/* load_planned.c - a map finds a context by its id; open addressing over digests, a payload's name that comes twice.
 * The digests are taken under a number that nobody else knows, so that nobody can choose names whose digests are equal.
 * Two names have equal ones by chance once in ten million manifests of a million rows: such a manifest is refused, and
 * taken the next time.
 */
#include "loader/load/load_planned.h"

#include "base/array.h"
#include "base/unconst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- names of payloads ------------------------------------------------------------- */

static uint64_t digest_name(const struct planned *p, const char *name)
{
    return digest_xxh3_seeded(name, strlen(name), p->seed) | 1;
}

/* The slot of a key, or the free one where it would be. */
static uint32_t slot_of(const struct planned *p, uint64_t key)
{
    const struct planned_slots *s = &p->payloads;
    uint32_t i = (uint32_t)(key >> 32) & (s->n - 1); /* the lowest bit is set in every key */

    while (s->at[i] >= 0 && p->at[s->at[i]].payload != key)
        i = (i + 1) & (s->n - 1);
    return i;
}

enum { SLOTS_MIN = 64, SLOTS_MAX = 1 << 30 };

/* Makes space for another key: at most four of five slots are taken. */
static int make_space(struct planned *p, struct err *err)
{
    struct planned_slots *s = &p->payloads, more = { .n = s->n ? 2 * s->n : SLOTS_MIN };

    if ((uint64_t)p->n * 5 < (uint64_t)s->n * 4)
        return 0;
    if (s->n == SLOTS_MAX)
        return err_nomem(err);
    more.at = malloc(more.n * sizeof(*more.at));
    if (!more.at)
        return err_nomem(err);
    memset(more.at, 0xff, more.n * sizeof(*more.at));
    free(s->at);
    *s = more;
    for (int i = 0; i < p->n; i++)
        if (p->at[i].payload)
            s->at[slot_of(p, p->at[i].payload)] = i;
    return 0;
}

/* Enters the payload's name of context number p->n. */
static int enter_name(struct planned *p, const char *name, struct err *err)
{
    struct planned_context *c = &p->at[p->n];

    if (make_space(p, err))
        return err->code;
    c->payload = digest_name(p, name);
    uint32_t slot = slot_of(p, c->payload);
    if (p->payloads.at[slot] >= 0)
        return err_set(err, ERR_FORMAT, "payload '%.80s' comes twice", name);
    p->payloads.at[slot] = p->n;
    return 0;
}

/* ---- contexts -------------------------------------------------------------------------- */

int planned_init(struct planned *p, struct err *err)
{
    *p = (struct planned){ 0 };
    return getrandom(&p->seed, sizeof(p->seed), 0) == sizeof(p->seed)
               ? 0
               : err_set(err, ERR_IO, "no random bytes: %s", strerror(errno));
}

void planned_end(struct planned *p)
{
    free(p->payloads.at);
    p->payloads = (struct planned_slots){ 0 };
}

void planned_release(struct planned *p)
{
    planned_end(p);
    for (int i = 0; i < p->own.n; i++)
        free(p->own.at[i]);
    free(p->own.at);
    map_release(&p->ids);
    map_release(&p->kinds);
    free(p->at);
    *p = (struct planned){ 0 };
}

/* Keeps the name of a payload that is not the one that its context would have. */
static int keep_name(struct planned *p, const struct placement *row, struct err *err)
{
    struct buf name = { 0 };

    manifest_put_payload_name(&name, row->id, row->token_digest, row->config);
    bool usual = !buf_failed(&name) && strcmp(buf_str(&name), row->payload) == 0;
    buf_release(&name);
    if (usual)
        return 0;
    while (p->own.n < p->n)
        if (ARRAY_PUSH(&p->own, NULL))
            return err_nomem(err);
    char *own = strdup(row->payload);
    if (own && !ARRAY_PUSH(&p->own, own))
        return 0;
    free(own);
    return err_nomem(err);
}

/* The number of what contexts of a config and a model share, or MAP_NOMEM. */
static int add_kind(struct planned *p, const char *config, const char *model_digest)
{
    char key[MANIFEST_CONFIG + DIGEST_HEX];
    size_t n = strlen(config) + 1;

    memcpy(key, config, n);
    memcpy(key + n, model_digest, DIGEST_HEX);
    return map_add(&p->kinds, key, n + strlen(model_digest), NULL);
}

static const char *config_of(const struct planned *p, const struct planned_context *c)
{
    return p->kinds.at[c->kind].key;
}

static const char *model_of(const struct planned *p, const struct planned_context *c)
{
    const char *config = config_of(p, c);

    return config + strlen(config) + 1;
}

/* Fills context number p->n; the caller names its payload, and counts it. added: its id was not there. */
static int fill_context(struct planned *p, const char *model_digest, const struct placement *row, bool *added,
                        struct err *err)
{
    if (ARRAY_GROW(p, p->n + 1))
        return err_nomem(err);
    struct planned_context *c = &p->at[p->n];
    *c = (struct planned_context){ .bytes = row->bytes,
                                   .n_tokens = (int32_t)row->n_tokens,
                                   .kind = add_kind(p, row->config, model_digest),
                                   .goal = -1,
                                   .tier = (int16_t)row->tier };
    digest_from_hex(row->token_digest, c->tokens, sizeof(c->tokens));
    return c->kind < 0 || map_add(&p->ids, row->id, strlen(row->id), added) < 0 ? err_nomem(err) : 0;
}

static void count_context(struct planned *p, const struct placement *row)
{
    p->n++;
    if (row->tier < 0)
        return;
    p->n_placed++;
    p->count[row->tier]++;
    if (__builtin_add_overflow(p->bytes[row->tier], row->bytes, &p->bytes[row->tier]))
        p->bytes[row->tier] = INT64_MAX;
}

int planned_add(struct planned *p, const char *model_digest, const struct placement *row, struct err *err)
{
    bool added;

    if (fill_context(p, model_digest, row, &added, err))
        return err->code;
    if (!added)
        return err_set(err, ERR_FORMAT, "id '%.80s' comes twice", row->id);
    if (row->payload && (enter_name(p, row->payload, err) || keep_name(p, row, err)))
        return err->code;
    count_context(p, row);
    return 0;
}

int planned_add_entry(struct planned *p, const struct entry *e, int tier, struct err *err)
{
    const struct placement row = { .id = e->id,
                                   .token_digest = e->token_digest,
                                   .config = e->config,
                                   .payload = e->payload,
                                   .n_tokens = e->n_tokens,
                                   .bytes = e->bytes,
                                   .tier = tier };
    bool added;

    if (fill_context(p, e->model_digest, &row, &added, err) || keep_name(p, &row, err) ||
        planned_know(&p->at[p->n], e, err))
        return err->code;
    p->at[p->n].payload = digest_name(p, e->payload);
    count_context(p, &row);
    return 0;
}

struct planned_context *planned_find(const struct planned *p, const char *id)
{
    int i = map_find(&p->ids, id, strlen(id));

    return i < 0 ? NULL : &p->at[i];
}

bool planned_same(const struct planned *p, const struct planned_context *c, const struct entry *e)
{
    uint8_t tokens[sizeof(c->tokens)];

    if (strcmp(config_of(p, c), e->config) != 0 || strcmp(model_of(p, c), e->model_digest) != 0)
        return false;
    digest_from_hex(e->token_digest, tokens, sizeof(tokens));
    return memcmp(tokens, c->tokens, sizeof(tokens)) == 0;
}

struct planned_context *planned_of(const struct planned *p, const struct entry *e)
{
    struct planned_context *c = planned_find(p, e->id);

    return c && e->payload && c->payload == digest_name(p, e->payload) && planned_same(p, c, e) ? c : NULL;
}

struct entry planned_variant(const struct planned *p, int i)
{
    const struct planned_context *c = &p->at[i];
    struct entry e = { .id = p->ids.at[i].key,
                       .config = unconst(config_of(p, c)),
                       .n_tokens = c->n_tokens,
                       .bytes = c->bytes,
                       .size = c->size,
                       .tier = c->tier };

    digest_hex(c->tokens, sizeof(c->tokens), e.token_digest);
    snprintf(e.model_digest, sizeof(e.model_digest), "%s", model_of(p, c));
    if (c->size)
        digest_hex(c->checksum, sizeof(c->checksum), e.checksum);
    return e;
}

int planned_entry(const struct planned *p, int i, struct planned_texts *texts, struct entry *e, struct err *err)
{
    const struct planned_context *c = &p->at[i];

    *e = planned_variant(p, i);
    if (c->size) {
        object_file(c->object, texts->file);
        e->file = texts->file;
    }
    e->payload = i < p->own.n ? p->own.at[i] : NULL;
    if (!c->payload || e->payload)
        return 0;
    manifest_put_payload_name(&texts->payload, e->id, e->token_digest, e->config);
    e->payload = texts->payload.at;
    return buf_failed(&texts->payload) ? err_nomem(err) : 0;
}

int planned_know(struct planned_context *c, const struct entry *e, struct err *err)
{
    if (!object_parse(e->file, c->object))
        return err_set(err, ERR_FORMAT, "'%.100s' is not the name of a placed payload", e->file);
    digest_from_hex(e->checksum, c->checksum, sizeof(c->checksum));
    c->size = e->size;
    return 0;
}

void planned_settle(struct planned *p, struct planned_context *c)
{
    c->in_place = true;
    p->n_in_place++;
    p->in_place_bytes[c->tier] += c->bytes;
}

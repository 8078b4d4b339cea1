/* load_planned.c - open addressing over digests: one table finds a context by its id, the other a payload's name that
 * comes twice.
 */
#include "loader/load/load_planned.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- digests ------------------------------------------------------------------- */

static uint64_t digest_text(const struct planned *p, const char *text)
{
    return digest_xxh3_seeded(text, strlen(text), p->seed);
}

/* Of what entry_same() compares, without the id. */
static uint64_t digest_variant(const struct planned *p, const char *token_digest, const char *model_digest,
                               const char *config)
{
    char text[2 * DIGEST_HEX + MANIFEST_CONFIG];
    int n = snprintf(text, sizeof(text), "%s\n%s\n%s", token_digest, model_digest, config);

    return digest_xxh3_seeded(text, (size_t)n, p->seed);
}

/* ---- tables ------------------------------------------------------------------------ */

static uint64_t key_of(const struct planned *p, const struct planned_slots *s, int number)
{
    return s == &p->ids ? p->at[number].id : p->at[number].payload;
}

/* The slot of a key, or the free one where it would be. */
static uint32_t slot_of(const struct planned *p, const struct planned_slots *s, uint64_t key)
{
    uint32_t i = (uint32_t)(key >> 32) & (s->n - 1); /* the lowest bit is set in every key */

    while (s->at[i] >= 0 && key_of(p, s, s->at[i]) != key)
        i = (i + 1) & (s->n - 1);
    return i;
}

enum { SLOTS_MIN = 64, SLOTS_MAX = 1 << 30 };

/* Makes space for another key: at most four of five slots are taken. */
static int make_space(const struct planned *p, struct planned_slots *s, struct err *err)
{
    struct planned_slots more = { .n = s->n ? 2 * s->n : SLOTS_MIN };

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
        if (key_of(p, s, i))
            s->at[slot_of(p, s, key_of(p, s, i))] = i;
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
    free(p->ids.at);
    free(p->at);
    *p = (struct planned){ 0 };
}

/* Enters context number p->n under its key, which must be new. */
static int enter(struct planned *p, struct planned_slots *s, const char *what, const char *text, struct err *err)
{
    if (make_space(p, s, err))
        return err->code;
    uint32_t slot = slot_of(p, s, key_of(p, s, p->n));
    if (s->at[slot] >= 0)
        return err_set(err, ERR_FORMAT, "%s '%.80s' comes twice", what, text);
    s->at[slot] = p->n;
    return 0;
}

int planned_add(struct planned *p, const struct manifest *m, const struct placement *row, struct err *err)
{
    if (ARRAY_GROW(p, p->n + 1))
        return err_nomem(err);
    p->at[p->n] =
        (struct planned_context){ .id = digest_text(p, row->id) | 1,
                                  .payload = row->payload ? digest_text(p, row->payload) | 1 : 0,
                                  .variant = digest_variant(p, row->token_digest, m->model_digest, row->config),
                                  .bytes = row->bytes,
                                  .tier = row->tier };
    if (enter(p, &p->ids, "id", row->id, err) || (row->payload && enter(p, &p->payloads, "payload", row->payload, err)))
        return err->code;
    p->n++;
    if (row->tier < 0)
        return 0;
    p->n_placed++;
    p->count[row->tier]++;
    if (__builtin_add_overflow(p->bytes[row->tier], row->bytes, &p->bytes[row->tier]))
        p->bytes[row->tier] = INT64_MAX;
    return 0;
}

struct planned_context *planned_find(const struct planned *p, const char *id)
{
    if (!p->ids.n)
        return NULL;
    int32_t number = p->ids.at[slot_of(p, &p->ids, digest_text(p, id) | 1)];
    return number < 0 ? NULL : &p->at[number];
}

struct planned_context *planned_of(const struct planned *p, const struct entry *e)
{
    struct planned_context *c = planned_find(p, e->id);

    return c && c->variant == digest_variant(p, e->token_digest, e->model_digest, e->config) && e->payload &&
                   c->payload == (digest_text(p, e->payload) | 1)
               ? c
               : NULL;
}

void planned_settle(struct planned *p, struct planned_context *c, const struct entry *e)
{
    c->in_place = true;
    c->checksum = strtoull(e->checksum, NULL, 16);
    c->size = e->size;
    object_parse(e->file, c->object);
    p->n_in_place++;
    p->in_place_bytes[c->tier] += c->bytes;
}

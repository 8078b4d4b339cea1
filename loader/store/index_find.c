/* index_find.c - finds the longest placed prefix of a prompt. The prompt is hashed once, chunk by chunk. At each border
 * between chunks the indexes are searched for contexts that end in the next chunk; their keys begin with the digest so
 * far. Then parts of contexts are searched from the last border down to the longest context found. The first hit is the
 * longest, so a prompt that shares a thousand borders with a context costs one lookup.
 */
#include "loader/store/index.h"

#include <stdlib.h>
#include <string.h>

/* ---- one chunk ---- */

/* The next chunk. `chain`: digest of all ids before it, and of the first n_added of it. */
struct chunk {
    struct digest *chain;
    uint8_t prefix[INDEX_ID]; // digest of the chunks before it
    const int32_t *id;        // (n) the prompt's ids in this chunk, at most 255
    size_t n, n_before, n_added;
};

/* Contexts of a view that end in a chunk, by their length: those that are not compared yet. */
struct span {
    const struct index_record *at, *end;
};

/* What one search needs. */
struct search {
    const struct index_views *views;
    struct span *span;     // (views->n)
    uint8_t (*border)[32]; // (n_borders) the prompt's digests after its first chunk, its second ...
    size_t n_borders;
    struct index_hit *hit;
};

static struct span span_of(const struct index_view *v, const struct chunk *c)
{
    const struct index_record *end = v->index->record + v->index->n;
    struct index_key key = { .tail = { 0 } };

    if (v->name_space < 0)
        return (struct span){ end, end };
    index_key_in(&key, v->name_space);
    memcpy(key.prefix, c->prefix, INDEX_ID);
    const struct index_record *at = index_from(v->index, &key);
    if (at == end || memcmp(&at->key, &key, offsetof(struct index_key, tail)) != 0)
        return (struct span){ end, end };
    key.tail[0] = DIGEST_CHUNK >> 8; /* parts follow */
    return (struct span){ at, index_from_in(at, end, &key) };
}

/* The ids of the chunk in the shortest context that is not compared yet; DIGEST_CHUNK: there is none. */
static size_t shortest(const struct search *s)
{
    size_t n = DIGEST_CHUNK;

    for (int i = 0; i < s->views->n; i++)
        if (s->span[i].at < s->span[i].end && s->span[i].at->key.tail[1] < n)
            n = s->span[i].at->key.tail[1];
    return n;
}

/* Steps over the contexts with n ids of the chunk. Returns the one with a digest, or NULL. */
static const struct index_record *take(struct span *span, size_t n, const uint8_t digest[32])
{
    const struct index_record *first = span->at;

    if (first == span->end || first->key.tail[1] != n)
        return NULL;
    struct index_key key = first->key;
    memset(key.digest, 0xff, sizeof(key.digest));
    span->at++;
    if (span->at < span->end && span->at->key.tail[1] == n) /* usually there is one */
        span->at = index_from_in(span->at, span->end, &key);
    memcpy(key.digest, digest, sizeof(key.digest));
    first = index_from_in(first, span->at, &key);
    return first < span->at && memcmp(&first->key, &key, sizeof(key)) == 0 ? first : NULL;
}

/* Searches for contexts that end in the chunk: 1 and the longest in *s->hit, 0 if there is none, or an error. Of equal
 * lengths the first view counts. Every id is hashed once, however many lengths there are. */
static int find_in_chunk(struct search *s, struct chunk *c, struct err *err)
{
    uint8_t digest[32];
    int found = 0;

    for (int i = 0; i < s->views->n; i++)
        s->span[i] = span_of(&s->views->at[i], c);
    for (size_t n = shortest(s); n <= c->n; n = shortest(s)) {
        digest_add_tokens(c->chain, c->id + c->n_added, n - c->n_added);
        c->n_added = n;
        if (digest_peek_tokens(c->chain, c->id, 0, digest, err))
            return err->code;
        for (int i = s->views->n - 1; i >= 0; i--) {
            const struct index_record *r = take(&s->span[i], n, digest);
            if (!r)
                continue;
            *s->hit = (struct index_hit){ i, *r };
            s->hit->record.n_tokens = (uint32_t)(c->n_before + n);
            found = 1;
        }
    }
    return found;
}

/* ---- whole contexts ---- */

/* The last hit is the longest prefix. Also fills the borders. */
static int find_contexts(struct search *s, const struct index_prompt *prompt, struct err *err)
{
    struct chunk c = { .chain = digest_new(err), .id = prompt->id };
    int code = 0, found = 0;

    if (!c.chain)
        return err->code;
    for (;; c.n_before += DIGEST_CHUNK, c.id += DIGEST_CHUNK, c.n_added = 0) {
        size_t left = prompt->n - c.n_before;
        c.n = left < DIGEST_CHUNK ? left : DIGEST_CHUNK - 1;
        code = find_in_chunk(s, &c, err);
        found |= code == 1;
        if (code < 0 || left < DIGEST_CHUNK)
            break;
        uint8_t *whole = s->border[s->n_borders++];
        digest_add_tokens(c.chain, c.id + c.n_added, DIGEST_CHUNK - c.n_added);
        code = digest_peek_tokens(c.chain, prompt->id, 0, whole, err);
        if (code < 0)
            break;
        memcpy(c.prefix, whole, INDEX_ID);
    }
    digest_end(c.chain, NULL);
    return code < 0 ? code : found;
}

/* ---- parts of contexts ---- */

/* Searches all indexes for parts that end at border i. */
static bool find_part(const struct search *s, size_t i)
{
    struct index_key key;

    index_key_set_part(&key, s->border[i]);
    for (int v = 0; v < s->views->n; v++) {
        const struct index_view *view = &s->views->at[v];
        index_key_in(&key, view->name_space);
        const struct index_record *r =
            view->name_space < 0 || !view->index->n_parts ? NULL : index_seek(view->index, &key);
        if (r) {
            *s->hit = (struct index_hit){ v, *r };
            s->hit->record.n_tokens = (uint32_t)((i + 1) * DIGEST_CHUNK);
            return true;
        }
    }
    return false;
}

static int find_parts(const struct search *s, int found)
{
    for (size_t i = s->n_borders; i > 0 && !(found && i * DIGEST_CHUNK <= s->hit->record.n_tokens); i--)
        if (find_part(s, i - 1))
            return 1;
    return found;
}

int index_find(const struct index_views *views, const struct index_prompt *prompt, struct index_hit *hit,
               struct err *err)
{
    struct search s = { .views = views,
                        .span = malloc((size_t)views->n * sizeof(*s.span) + 1),
                        .border = malloc((prompt->n / DIGEST_CHUNK + 1) * sizeof(*s.border)),
                        .hit = hit };
    int found = s.span && s.border ? find_contexts(&s, prompt, err) : err_nomem(err);

    if (found >= 0)
        found = find_parts(&s, found);
    free(s.span);
    free(s.border);
    return found;
}

/* index_find.c - finds the longest placed prefix of a prompt. The prompt is hashed once, chunk by chunk. At each border
 * between chunks the indexes are searched for contexts that end in the next chunk; their keys begin with the digest so
 * far. Then parts of contexts are searched from the last border down to the longest context found. The first hit is the
 * longest, so a prompt that shares a thousand borders with a context costs one lookup.
 */
#include "loader/store/index.h"

#include "base/unconst.h"

#include <stdlib.h>
#include <string.h>

/* ---- one chunk ---- */

/* The next chunk. `chain`: digest of the whole chunks before; `tail`: the prompt's ids in this chunk, at most 255. */
struct chunk {
    const struct digest *chain;
    uint8_t prefix[INDEX_ID];
    const int32_t *tail;
    size_t n_tail;
};

static bool is_at(const struct index_record *r, const struct index_key *key)
{
    return memcmp(&r->key, key, offsetof(struct index_key, tail)) == 0;
}

/* Searches for contexts that end in the chunk: 1 and the longest in *hit, 0 if there is none, or an error. */
static int find_in_chunk(const struct index_view *v, const struct chunk *c, struct index_record *hit, struct err *err)
{
    const struct index_record *end = v->index->record + v->index->n, *r;
    struct index_key key = { .tail = { 0 } };
    int found = 0;

    if (v->name_space < 0)
        return 0;
    index_key_in(&key, v->name_space);
    memcpy(key.prefix, c->prefix, INDEX_ID);
    while ((r = index_from(v->index, &key)) < end && is_at(r, &key)) {
        size_t tail = r->key.tail[1];
        if (r->key.tail[0] || tail > c->n_tail)
            return found;
        key.tail[1] = (uint8_t)tail;
        if (digest_peek_tokens(c->chain, c->tail, tail, key.digest, err))
            return err->code;
        r = index_seek(v->index, &key);
        if (r) {
            *hit = *r;
            found = 1;
        }
        if (tail == DIGEST_CHUNK - 1)
            return found;
        key.tail[1]++;
        memset(key.digest, 0, sizeof(key.digest));
    }
    return found;
}

/* Sets *hit to the longest in all indexes; of equal lengths the first index counts. */
static int find_in_all(const struct index_views *views, const struct chunk *c, struct index_hit *hit, struct err *err)
{
    struct index_record r;
    uint32_t longest = 0;
    int code = 0;

    for (int i = 0; i < views->n && code >= 0; i++) {
        code = find_in_chunk(&views->at[i], c, &r, err);
        if (code != 1 || r.n_tokens <= longest)
            continue;
        longest = r.n_tokens;
        *hit = (struct index_hit){ i, r };
    }
    return code < 0 ? code : longest > 0;
}

/* ---- whole contexts ---- */

/* The digests of a prompt at its borders. */
struct borders {
    uint8_t (*digest)[32]; // (n) of the first chunk, of the first two ...
    size_t n;
};

/* The last hit is the longest prefix. Also fills the borders. */
static int find_contexts(const struct index_views *views, const struct index_prompt *prompt, struct borders *borders,
                         struct index_hit *hit, struct err *err)
{
    struct chunk c = { .chain = digest_new(err), .tail = prompt->id };
    int code = 0, found = 0;

    if (!c.chain)
        return err->code;
    for (size_t done = 0;; done += DIGEST_CHUNK, c.tail += DIGEST_CHUNK) {
        size_t left = prompt->n - done;
        c.n_tail = left < DIGEST_CHUNK ? left : DIGEST_CHUNK - 1;
        code = find_in_all(views, &c, hit, err);
        found |= code == 1;
        if (code < 0 || left < DIGEST_CHUNK)
            break;
        uint8_t *whole = borders->digest[borders->n++];
        digest_add_tokens(unconst(c.chain), c.tail, DIGEST_CHUNK);
        code = digest_peek_tokens(c.chain, prompt->id, 0, whole, err);
        if (code < 0)
            break;
        memcpy(c.prefix, whole, INDEX_ID);
    }
    digest_end(unconst(c.chain), NULL);
    return code < 0 ? code : found;
}

/* ---- parts of contexts ---- */

/* Searches all indexes for parts that end at a border. */
static bool find_part(const struct index_views *views, const uint8_t digest[32], struct index_hit *hit)
{
    struct index_key key;

    index_key_set_part(&key, digest);
    for (int i = 0; i < views->n; i++) {
        const struct index_view *v = &views->at[i];
        index_key_in(&key, v->name_space);
        const struct index_record *r = v->name_space < 0 || !v->index->n_parts ? NULL : index_seek(v->index, &key);
        if (r) {
            *hit = (struct index_hit){ i, *r };
            return true;
        }
    }
    return false;
}

static int find_parts(const struct index_views *views, const struct borders *borders, struct index_hit *hit, int found)
{
    for (size_t i = borders->n; i > 0 && !(found && i * DIGEST_CHUNK <= hit->record.n_tokens); i--)
        if (find_part(views, borders->digest[i - 1], hit))
            return 1;
    return found;
}

int index_find(const struct index_views *views, const struct index_prompt *prompt, struct index_hit *hit,
               struct err *err)
{
    struct borders borders = { .digest = malloc((prompt->n / DIGEST_CHUNK + 1) * sizeof(*borders.digest)) };

    if (!borders.digest)
        return err_nomem(err);
    int found = find_contexts(views, prompt, &borders, hit, err);
    if (found >= 0)
        found = find_parts(views, &borders, hit, found);
    free(borders.digest);
    return found;
}
